"""packaging.version: versions that compare as PEP 440 says."""
import re as _re

_PATTERN = _re.compile(r"v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?"
                       r"(?:-(\d+)|[-_.]?(?:post|rev|r)[-_.]?(\d*))?((?:[-_.]?dev[-_.]?\d*)?)"
                       r"(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?", _re.I)
_KINDS = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


class InvalidVersion(ValueError):
    pass


class Version:
    def __init__(self, version):
        found = _PATTERN.fullmatch(version.strip())
        if not found:
            raise InvalidVersion(f"Invalid version: {version!r}")
        epoch, release, kind, number, dashed, posted, dev, local = found.groups()
        self.epoch = int(epoch or 0)
        self.release = tuple(int(part) for part in release.split("."))
        self.pre = None if kind is None else (_KINDS.get(kind.lower(), kind.lower()), int(number or 0))
        is_post = dashed is not None or posted is not None
        self.post = int(dashed or posted or 0) if is_post else None
        self.dev = int(_re.sub(r"\D", "", dev) or 0) if dev else None
        self.local = None if local is None else _re.sub(r"[-_]", ".", local.lower())

    major = property(lambda self: self.release[0])
    minor = property(lambda self: (self.release + (0, 0))[1])
    micro = property(lambda self: (self.release + (0, 0))[2])
    is_devrelease = property(lambda self: self.dev is not None)
    is_postrelease = property(lambda self: self.post is not None)
    is_prerelease = property(lambda self: self.dev is not None or self.pre is not None)

    @property
    def base_version(self):
        return (f"{self.epoch}!" if self.epoch else "") + ".".join(str(part) for part in self.release)

    @property
    def public(self):
        return str(self).split("+")[0]

    def _key(self):
        release = self.release
        while len(release) > 1 and release[-1] == 0:
            release = release[:-1]
        # Of one release: 1.0.dev1 < 1.0a1 < 1.0 < 1.0.post1; 1.0 < 1.0+local.
        if self.pre is not None:
            pre = (1, self.pre)
        else:
            pre = (0, ("", 0)) if self.post is None and self.dev is not None else (2, ("", 0))
        local = [] if self.local is None else [(1, int(part), "") if part.isdigit() else (0, 0, part)
                                               for part in self.local.split(".")]
        return (self.epoch, release, pre, -1 if self.post is None else self.post,
                (1, 0) if self.dev is None else (0, self.dev), self.local is not None, local)

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, Version) else NotImplemented

    def __lt__(self, other):
        return self._key() < other._key() if isinstance(other, Version) else NotImplemented

    def __le__(self, other):
        return self._key() <= other._key() if isinstance(other, Version) else NotImplemented

    def __gt__(self, other):
        return self._key() > other._key() if isinstance(other, Version) else NotImplemented

    def __ge__(self, other):
        return self._key() >= other._key() if isinstance(other, Version) else NotImplemented

    def __hash__(self):
        return hash(str(self))

    def __str__(self):
        return self.base_version + ("".join(str(part) for part in self.pre) if self.pre else "") \
            + ("" if self.post is None else f".post{self.post}") + ("" if self.dev is None else f".dev{self.dev}") \
            + ("" if self.local is None else f"+{self.local}")

    def __repr__(self):
        return f"<Version('{self}')>"


def parse(version):
    return Version(version)
