"""pytest: what test files say of their tests, and main(), which runs them."""
import contextlib as _contextlib
import importlib as _importlib
import inspect as _inspect
import itertools as _itertools
import os as _os
import sys as _sys
import tempfile as _tempfile
import time as _time
import traceback as _traceback
import warnings as _warnings

__version__ = "8.0.0"


class _Outcome(BaseException):
    # No Exception: an `except Exception` in a test does not catch it.
    def __init__(self, msg=""):
        super().__init__(msg)
        self.msg = msg


class Skipped(_Outcome):
    pass


class Failed(_Outcome):
    pass


class XFailed(_Outcome):
    pass


class Exit(_Outcome):
    pass


class UsageError(Exception):
    pass


def skip(reason="", *, allow_module_level=False, msg=None):
    raise Skipped(msg or reason)


def fail(reason="", pytrace=True, msg=None):
    raise Failed(msg or reason)


def xfail(reason=""):
    raise XFailed(reason)


def exit(reason="", returncode=None):
    raise Exit(reason)


def importorskip(modname, minversion=None, reason=None):
    try:
        module = _importlib.import_module(modname)
    except ImportError as e:
        raise Skipped(reason or f"could not import {modname!r}: {e}") from None
    for part in modname.split(".")[1:]:
        if not hasattr(module, "__name__"):
            module = getattr(module, part)
    return module


# --- marks
class Mark:
    def __init__(self, name, args, kwargs):
        self.name, self.args, self.kwargs = name, args, kwargs

    def __repr__(self):
        return f"Mark(name={self.name!r}, args={self.args!r}, kwargs={self.kwargs!r})"


class MarkDecorator:
    def __init__(self, name, args=(), kwargs=None):
        self.mark = Mark(name, args, kwargs or {})
        self.name, self.args, self.kwargs = name, args, self.mark.kwargs

    def __call__(self, *args, **kwargs):
        # A function or class alone is what it marks.
        if len(args) == 1 and not kwargs and (_inspect.isfunction(args[0]) or _inspect.isclass(args[0])):
            target = args[0]
            own = [] if _inspect.isclass(target) and "pytestmark" not in vars(target) \
                else list(getattr(target, "pytestmark", []))
            target.pytestmark = own + [self.mark]
            return target
        return MarkDecorator(self.name, self.args + args, {**self.kwargs, **kwargs})


class _Marks:
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return MarkDecorator(name)


mark = _Marks()


class _ParameterSet:
    def __init__(self, values, id, marks):
        self.values, self.id = values, id
        self.marks = [m.mark for m in (marks if isinstance(marks, (list, tuple)) else [marks])]


def param(*values, id=None, marks=()):
    return _ParameterSet(values, id, marks)


# --- fixtures
class _Fixture:
    def __init__(self, function, scope="function", params=None, autouse=False, ids=None, name=None):
        self.function, self.scope, self.params, self.autouse, self.ids = function, scope, params, autouse, ids
        self.name = name or function.__name__
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __get__(self, instance, owner):
        # A method of a test class: called with its instance.
        return self if instance is None else _Fixture(_bound(self.function, instance), self.scope, self.params,
                                                      self.autouse, self.ids, self.name)

    def __call__(self, *args, **kwargs):
        raise Failed(f'Fixture "{self.name}" called directly: tests get it as an argument of its name')


def _bound(function, instance):
    return function.__get__(instance, type(instance))


def fixture(fixture_function=None, *, scope="function", params=None, autouse=False, ids=None, name=None):
    def make(function):
        return _Fixture(function, scope, params, autouse, ids, name)

    return make(fixture_function) if fixture_function is not None else make


yield_fixture = fixture


# --- expectations
class ExceptionInfo:
    def __init__(self):
        self.type = self.value = self.tb = None

    def match(self, pattern):
        import re

        if not re.search(pattern, str(self.value)):
            raise AssertionError(f"Regex pattern did not match.\n Regex: {pattern!r}\n Input: {str(self.value)!r}")
        return True

    def exconly(self, tryshort=False):
        return "".join(_traceback.format_exception_only(self.type, self.value)).rstrip()

    def __repr__(self):
        return f"<ExceptionInfo {self.value!r}>"


class _Raises:
    def __init__(self, expected, match):
        self.expected, self.match = expected, match

    def __enter__(self):
        self.info = ExceptionInfo()
        return self.info

    def __exit__(self, kind, value, traceback):
        if kind is None:
            raise Failed(f"DID NOT RAISE {self.expected!r}")
        if not issubclass(kind, self.expected):
            return False
        self.info.type, self.info.value = kind, value
        if self.match is not None:
            self.info.match(self.match)
        return True


def raises(expected_exception, *args, match=None, **kwargs):
    context = _Raises(expected_exception, match)
    if not args:
        return context
    function, *rest = args
    with context as info:
        function(*rest, **kwargs)
    return info


class _Warns:
    def __init__(self, expected, match):
        self.expected, self.match = expected, match

    def __enter__(self):
        self._catch = _warnings.catch_warnings(record=True)
        self.list = self._catch.__enter__()
        _warnings.simplefilter("always")
        return self.list

    def __exit__(self, kind, value, traceback):
        import re

        self._catch.__exit__(kind, value, traceback)
        if kind is not None:
            return False
        fits = [w for w in self.list if issubclass(w.category, self.expected)]
        if not any(self.match is None or re.search(self.match, str(w.message)) for w in fits):
            raise Failed(f"DID NOT WARN. No warnings of type {self.expected!r} were emitted"
                         + (f" that match {self.match!r}." if self.match else "."))


def warns(expected_warning=Warning, *args, match=None, **kwargs):
    context = _Warns(expected_warning, match)
    if not args:
        return context
    function, *rest = args
    with context:
        return function(*rest, **kwargs)


def deprecated_call(*args, match=None, **kwargs):
    return warns((DeprecationWarning, PendingDeprecationWarning), *args, match=match, **kwargs)


class approx:
    """A number, or numbers in a list, tuple, dict or tensor, that others may be near to."""

    def __init__(self, expected, rel=None, abs=None, nan_ok=False):
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    def _near(self, actual, expected):
        if isinstance(expected, (list, tuple)):
            return len(actual) == len(expected) and all(self._near(a, e) for a, e in zip(actual, expected))
        if isinstance(expected, dict):
            return set(actual) == set(expected) and all(self._near(actual[k], e) for k, e in expected.items())
        if hasattr(expected, "tolist"):
            return self._near(actual.tolist() if hasattr(actual, "tolist") else actual, expected.tolist())
        if hasattr(actual, "tolist"):
            actual = actual.tolist()
        if actual == expected:
            return True
        if not isinstance(expected, (int, float)) or isinstance(expected, bool):
            return False
        if expected != expected:
            return self.nan_ok and actual != actual
        if expected in (float("inf"), float("-inf")):
            return False
        return _absolute(actual - expected) <= self._tolerance(expected)

    def _tolerance(self, expected):
        least = 1e-12 if self.abs is None else self.abs
        if self.rel is None and self.abs is not None:
            return least
        return max(_absolute(expected) * (1e-6 if self.rel is None else self.rel), least)

    def __eq__(self, actual):
        return self._near(actual, self.expected)

    def __ne__(self, actual):
        return not self == actual

    def __repr__(self):
        if isinstance(self.expected, (int, float)) and not isinstance(self.expected, bool):
            return f"{self.expected!r} ± {self._tolerance(self.expected):.1e}"
        return f"approx({self.expected!r})"


_absolute = abs


# --- fixtures of pytest's own
class MonkeyPatch:
    def __init__(self):
        self._undo = []

    def setattr(self, target, name, value, raising=True):
        missing = object()
        before = getattr(target, name, missing)
        if before is missing and raising:
            raise AttributeError(f"{target!r} has no attribute {name!r}")
        self._undo.append(lambda: delattr(target, name) if before is missing else setattr(target, name, before))
        setattr(target, name, value)

    def setitem(self, mapping, name, value):
        had, before = name in mapping, mapping.get(name)
        self._undo.append(lambda: mapping.update({name: before}) if had else mapping.pop(name, None))
        mapping[name] = value

    def delitem(self, mapping, name, raising=True):
        if name not in mapping:
            if raising:
                raise KeyError(name)
            return
        before = mapping.pop(name)
        self._undo.append(lambda: mapping.update({name: before}))

    def setenv(self, name, value, prepend=None):
        if prepend and name in _os.environ:
            value = value + prepend + _os.environ[name]
        self.setitem(_os.environ, name, str(value))

    def delenv(self, name, raising=True):
        self.delitem(_os.environ, name, raising)

    def chdir(self, path):
        before = _os.getcwd()
        self._undo.append(lambda: _os.chdir(before))
        _os.chdir(path)

    def syspath_prepend(self, path):
        self._undo.append(lambda: _sys.path.remove(str(path)))
        _sys.path.insert(0, str(path))

    def undo(self):
        while self._undo:
            self._undo.pop()()


class _Captured:
    def __init__(self, out, err):
        self.out, self.err = out, err

    def __iter__(self):
        return iter((self.out, self.err))


class _Capsys:
    def __init__(self):
        import io

        self._io = io
        self._before = _sys.stdout, _sys.stderr
        _sys.stdout, _sys.stderr = io.StringIO(), io.StringIO()

    def readouterr(self):
        got = _Captured(_sys.stdout.getvalue(), _sys.stderr.getvalue())
        _sys.stdout, _sys.stderr = self._io.StringIO(), self._io.StringIO()
        return got

    def end(self):
        _sys.stdout, _sys.stderr = self._before


def _monkeypatch():
    patch = MonkeyPatch()
    yield patch
    patch.undo()


def _capsys():
    capture = _Capsys()
    yield capture
    capture.end()


def _tmp_path():
    from pathlib import Path

    with _tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


_OWN = {"monkeypatch": _Fixture(_monkeypatch), "capsys": _Fixture(_capsys), "tmp_path": _Fixture(_tmp_path)}


class FixtureRequest:
    def __init__(self, run, name, param):
        self._run, self.fixturename, self.node, self.function = run, name, run.item, run.item.function
        self.module, self.cls, self.config = run.item.module, run.item.cls, run.session.config
        if param is not _NONE:
            self.param = param

    def addfinalizer(self, function):
        self._run.teardown.callback(function)

    def getfixturevalue(self, name):
        return self._run.value_of(name)


_NONE = object()


# --- collecting and running
class _Item:
    def __init__(self, module, cls, name, function, marks, values, fixed, ids):
        self.module, self.cls, self.originalname, self.function = module, cls, name, function
        self.marks, self.values, self.fixed = marks, values, fixed  # fixed: the parameters of fixtures
        self.name = name + (f"[{'-'.join(ids)}]" if ids else "")
        self.line = _inspect.unwrap(function).__code__.co_firstlineno
        where = _os.path.basename(getattr(module, "__file__", None) or module.__name__)
        self.file = where
        self.nodeid = "::".join([where] + ([cls.__name__] if cls else []) + [self.name])

    def get_closest_marker(self, name, default=None):
        return next((m for m in reversed(self.marks) if m.name == name), default)

    def iter_markers(self, name=None):
        return [m for m in reversed(self.marks) if name is None or m.name == name]


def _names_of(function, bound=False):
    found = [p.name for p in _inspect.signature(function).parameters.values()
             if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return found[1:] if bound else found


def _id_of(value, name, at):
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (int, float, complex)):
        return str(value)
    if _inspect.isclass(value) or _inspect.isfunction(value):
        return value.__name__
    return f"{name}{at}"


def _choices(names, sets, ids):
    """(values by name, id, marks) for each set of a parametrize()."""
    out = []
    for at, one in enumerate(sets):
        marks, own = [], None
        if isinstance(one, _ParameterSet):
            values, own, marks = one.values, one.id, one.marks
        else:
            values = tuple(one) if len(names) > 1 else (one,)
        if len(values) != len(names):
            raise ValueError(f"parametrize: {len(names)} names {names!r}, and {len(values)} values {values!r}")
        if own is None and callable(ids):
            own = "-".join(str(i) if i is not None else _id_of(v, n, at) for n, v, i in
                           zip(names, values, map(ids, values)))
        elif own is None and ids is not None and ids[at] is not None:
            own = str(ids[at])
        if own is None:
            own = "-".join(_id_of(v, n, at) for n, v in zip(names, values))
        out.append((dict(zip(names, values)), own, marks))
    return out


class _Session:
    def __init__(self, modules, conftests, config):
        self.items, self.fixtures, self.kept, self.config = [], dict(_OWN), {}, config
        self.session_end = _contextlib.ExitStack()
        for module in conftests + modules:
            for name in dir(module):
                found = getattr(module, name)
                if isinstance(found, _Fixture):
                    self.fixtures[found.name] = found
        for module in modules:
            self._collect(module)
        # In the order of the file: a module's and a class's names come in that of the alphabet.
        order = {id(module): at for at, module in enumerate(modules)}
        self.items.sort(key=lambda item: (order[id(item.module)], item.line))

    def _collect(self, module):
        common = _marks_of(module)
        for name in dir(module):
            found = getattr(module, name)
            if _inspect.isclass(found) and name.startswith("Test") and "__init__" not in vars(found):
                for method in dir(found):
                    function = getattr(found, method)
                    if method.startswith("test") and callable(function):
                        self._add(module, found, method, function, common + _marks_of(found))
            elif name.startswith("test") and _inspect.isfunction(found):
                self._add(module, None, name, found, common)

    def _fixture(self, name, cls):
        own = getattr(cls, name, None) if cls else None
        return own if isinstance(own, _Fixture) else self.fixtures.get(name)

    def _add(self, module, cls, name, function, marks):
        marks = marks + _marks_of(function)
        axes, covered = [], []
        for one in marks:
            if one.name == "parametrize":
                named = one.args[0] if one.args else one.kwargs["argnames"]
                named = [n.strip() for n in named.split(",") if n.strip()] if isinstance(named, str) else list(named)
                sets = one.args[1] if len(one.args) > 1 else one.kwargs["argvalues"]
                axes.append(_choices(named, list(sets), one.kwargs.get("ids")))
                covered += named
        # Fixtures with parameters, also those that fixtures ask for.
        todo, seen = _names_of(function, cls is not None and not isinstance(vars(cls).get(name), staticmethod)), []
        while todo:
            wanted = todo.pop()
            of = self._fixture(wanted, cls)
            if wanted in covered or wanted in seen or of is None:
                continue
            seen.append(wanted)
            todo += [n for n in _names_of(of.function) if n not in ("self", "request")]
            if of.params is not None:
                axes.append([({("fixture", of.name): v}, i, m) for (_, i, m), v in
                             zip(_choices([of.name], of.params, of.ids),
                                 [p.values[0] if isinstance(p, _ParameterSet) else p for p in of.params])])
        # The decorator on top varies fastest, as in pytest.
        for combined in _itertools.product(*axes):
            values, fixed, ids, more = {}, {}, [], []
            for chosen, own, extra in combined:
                for key, value in chosen.items():
                    if isinstance(key, tuple):
                        fixed[key[1]] = value
                    else:
                        values[key] = value
                ids.append(own)
                more = more + extra
            self.items.append(_Item(module, cls, name, function, marks + more, values, fixed, ids))


def _marks_of(target):
    marks = getattr(target, "pytestmark", [])
    return [m.mark if isinstance(m, MarkDecorator) else m for m in (marks if isinstance(marks, list) else [marks])]


class _Run:
    def __init__(self, session, item):
        self.session, self.item = session, item
        self.values, self.teardown = {}, _contextlib.ExitStack()
        self.instance = item.cls() if item.cls else None

    def value_of(self, name):
        if name in self.item.values:
            return self.item.values[name]
        if name in self.values:
            return self.values[name]
        if name == "request":
            return FixtureRequest(self, name, _NONE)
        fixture = getattr(self.instance, name, None) if self.instance is not None else None
        if not isinstance(fixture, _Fixture):
            fixture = self.session.fixtures.get(name)
        if fixture is None:
            known = ", ".join(sorted(self.session.fixtures))
            raise Failed(f"fixture '{name}' not found; there are {known}")
        chosen = self.item.fixed.get(name, _NONE)
        key = fixture.scope, name, repr(chosen)
        if fixture.scope != "function" and key in self.session.kept:
            return self.session.kept[key]
        given = {n: FixtureRequest(self, name, chosen) if n == "request" else self.value_of(n)
                 for n in _names_of(fixture.function)}
        value = fixture.function(**given)
        if _inspect.isgeneratorfunction(fixture.function):
            steps, value = value, next(value)
            end = self.teardown if fixture.scope == "function" else self.session.session_end
            end.callback(lambda: next(steps, None))
        if fixture.scope == "function":
            self.values[name] = value
        else:
            self.session.kept[key] = value
        return value

    def __call__(self):
        item = self.item
        with self.teardown:
            for name, fixture in self.session.fixtures.items():
                if fixture.autouse:
                    self.value_of(name)
            for one in item.iter_markers("usefixtures"):
                for name in one.args:
                    self.value_of(name)
            if self.instance is None:
                function = item.function
                bound = False
            else:
                function = getattr(self.instance, item.originalname)
                bound = False
                for step, when in (("setup_method", 0), ("teardown_method", 1)):
                    method = getattr(self.instance, step, None)
                    if method and when == 0:
                        method(*[function] * len(_names_of(method)))
                    elif method:
                        self.teardown.callback(method, *[function] * len(_names_of(method)))
            names = _names_of(function, bound)
            unused = [n for n in item.values if n not in _inspect.signature(function).parameters]
            if unused:
                raise Failed(f"in {item.originalname}: function uses no argument '{unused[0]}'")
            function(**{**item.values, **{n: self.value_of(n) for n in names}})


def _skipped(item):
    """Why it is skipped; None: it is not."""
    for one in item.marks:
        if one.name == "skip":
            return one.kwargs.get("reason", one.args[0] if one.args else "unconditional skip")
        if one.name == "skipif" and any(one.args or [one.kwargs.get("condition")]):
            return one.kwargs.get("reason", "")
    return None


def _expected(item):
    """The xfail mark that holds, if any."""
    for one in item.iter_markers("xfail"):
        if not one.args or any(one.args):
            return one
    return None


def _outcome(session, item):
    """(letter, word, text of the problem)"""
    why = _skipped(item)
    if why is not None:
        return "s", "SKIPPED", why
    mark = _expected(item)
    if mark is not None and mark.kwargs.get("run") is False:
        return "x", "XFAIL", mark.kwargs.get("reason", "")
    try:
        _Run(session, item)()
    except Skipped as e:
        return "s", "SKIPPED", e.msg
    except XFailed as e:
        return "x", "XFAIL", e.msg
    except (KeyboardInterrupt, SystemExit, Exit):
        raise
    except BaseException as e:
        allowed = mark.kwargs.get("raises") if mark is not None else None
        if mark is not None and (allowed is None or isinstance(e, allowed)):
            return "x", "XFAIL", mark.kwargs.get("reason", "")
        return "F", "FAILED", e
    if mark is not None:
        if mark.kwargs.get("strict"):
            return "F", "FAILED", Failed("[XPASS(strict)] " + mark.kwargs.get("reason", ""))
        return "X", "XPASS", ""
    return ".", "PASSED", None


def _fits(item, expression):
    """-k: words that the name has, with and, or, not."""
    text = item.nodeid.lower()

    def whole(words, sign):
        return [w.strip() for w in f" {words} ".split(f" {sign} ")]

    def one(word):
        word = word.strip("() ")
        return not one(word[4:]) if word.startswith("not ") else word.lower() in text

    return any(all(one(word) for word in whole(part, "and")) for part in whole(expression, "or"))


def _module_of(path):
    main = _importlib.import_module("__main__")
    own = getattr(main, "__file__", None)
    if own and _os.path.abspath(path) == _os.path.abspath(own):
        return main
    if not _os.path.isfile(path):
        raise UsageError(f"file or directory not found: {path}")
    folder, file = _os.path.split(_os.path.abspath(path))
    name = file[:-3] if file.endswith(".py") else file
    # A file of a package is imported as its module.
    while _os.path.isfile(_os.path.join(folder, "__init__.py")):
        folder, package = _os.path.split(folder)
        name = package + "." + name
    if folder not in _sys.path:
        _sys.path.insert(0, folder)
    return _importlib.import_module(name)


def _conftests_of(paths):
    """The conftest.py of each folder that has one, the outer before the inner."""
    found = []
    for path in paths:
        folder = _os.path.dirname(_os.path.abspath(path))
        while True:
            file = _os.path.join(folder, "conftest.py")
            if _os.path.isfile(file) and file not in found:
                found.append(file)
            if not _os.path.isfile(_os.path.join(folder, "__init__.py")):
                break
            folder = _os.path.dirname(folder)
    return [_module_of(file) for file in reversed(found)]


class Parser:
    """What pytest_addoption() of a conftest.py gets."""

    def __init__(self, arguments):
        self._arguments = arguments

    def addoption(self, *names, **options):
        self._arguments.add_argument(*names, **options)

    def getgroup(self, name, description="", after=None):
        return self


class Config:
    def __init__(self, options):
        self.option = options

    def getoption(self, name, default=None, skip=False):
        return getattr(self.option, name.lstrip("-").replace("-", "_"), default)

    def addinivalue_line(self, name, line):
        pass


def _line(text, sign="="):
    text = f" {text} " if text else ""
    left = max((80 - len(text)) // 2, 1)
    return sign * left + text + sign * max(80 - len(text) - left, 1)


def main(args=None, plugins=None):
    """Runs the tests of the files that are named, or of the script itself. 0: all passed, 1: some failed, 5: none."""
    import argparse

    p = argparse.ArgumentParser(prog="pytest")
    p.add_argument("-v", "--verbose", action="count", default=0)
    p.add_argument("-q", "--quiet", action="count", default=0)
    p.add_argument("-x", "--exitfirst", action="store_true", help="stop at the first test that fails")
    p.add_argument("--maxfail", type=int, default=0)
    p.add_argument("-k", dest="keyword", default="", help="only tests whose names have these words: a and not b")
    p.add_argument("-s", "--capture", nargs="?", const="no", help="what tests print is never captured")
    p.add_argument("--tb", default="auto", choices=["auto", "long", "short", "line", "native", "no"])
    p.add_argument("-r", dest="chars", default="")
    p.add_argument("--collect-only", "--co", action="store_true")
    p.add_argument("--disable-warnings", action="store_true")
    p.add_argument("files", nargs="*", help="FILE.py or FILE.py::TEST")
    words = _sys.argv[1:] if args is None else args.split() if isinstance(args, str) else [str(a) for a in args]
    named = [f.partition("::")[0] for f in p.parse_known_args(words)[0].files]
    modules = []
    try:
        conftests = _conftests_of(named)
        for conftest in conftests:
            if hasattr(conftest, "pytest_addoption"):
                conftest.pytest_addoption(Parser(p))
        given = p.parse_args(words)
        chosen = [f.partition("::") for f in given.files]
        for path, _, _ in chosen:
            module = _module_of(path)
            if all(module is not m for m in modules):
                modules.append(module)
        config = Config(given)
        for conftest in conftests:
            if hasattr(conftest, "pytest_configure"):
                conftest.pytest_configure(config)
        session = _Session(modules or [_importlib.import_module("__main__")], conftests, config)
    except UsageError as e:
        print(f"ERROR: {e}")
        return 4
    except Skipped as e:
        print(f"collected 0 items / 1 skipped: {e.msg}")
        return 5
    items = [i for i in session.items if (not given.keyword or _fits(i, given.keyword))
             and (not chosen or any(not name or name in (i.nodeid.partition("::")[2], i.originalname)
                                    or i.nodeid.partition("::")[2].partition("[")[0] == name
                                    or i.nodeid.partition("::")[2].startswith(name + "::") for _, _, name in chosen))]
    loud, quiet = given.verbose > given.quiet, given.quiet > given.verbose
    left = len(session.items) - len(items)
    if not quiet:
        print(_line("test session starts"))
        print(f"collected {len(session.items)} item" + ("" if len(session.items) == 1 else "s")
              + (f" / {left} deselected / {len(items)} selected" if left else "") + "\n")
    if given.collect_only:
        for item in items:
            print(item.nodeid)
        return 0 if items else 5
    began, counts, failed, shown = _time.perf_counter(), {}, [], None
    most = 1 if given.exitfirst else given.maxfail
    for item in items:
        if not loud and item.file != shown:
            print(("\n" if shown else "") + ("" if quiet else item.file + " "), end="")
            shown = item.file
        if loud:
            print(item.nodeid + " ", end="", flush=True)
        letter, word, problem = _outcome(session, item)
        counts[word] = counts.get(word, 0) + 1
        print(word + (f" ({problem})" if word in ("SKIPPED", "XFAIL") and problem else "") if loud else letter,
              end="\n" if loud else "", flush=True)
        if word == "FAILED":
            failed.append((item, problem))
            if most and len(failed) >= most:
                break
    session.session_end.close()
    print("" if loud else "\n")
    if failed and given.tb != "no":
        print(_line("FAILURES"))
        for item, problem in failed:
            print(_line(item.nodeid.partition("::")[2].replace("::", "."), "_"))
            print("".join(_traceback.format_exception(problem)))
    if failed:
        print(_line("short test summary info"))
        for item, problem in failed:
            first = "".join(_traceback.format_exception_only(type(problem), problem)).split("\n")[0]
            print(f"FAILED {item.nodeid} - {first}")
    told = [f"{counts[word]} {name}" for word, name in
            (("FAILED", "failed"), ("PASSED", "passed"), ("SKIPPED", "skipped"), ("XFAIL", "xfailed"),
             ("XPASS", "xpassed")) if word in counts] + ([f"{left} deselected"] if left else [])
    print(_line((", ".join(told) or "no tests ran") + f" in {_time.perf_counter() - began:.2f}s"))
    return 1 if failed else 0 if items else 5
