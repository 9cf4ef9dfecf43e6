"""shlex: texts as the words of a shell, and words as such a text."""
__all__ = ["split", "quote", "join"]

_SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"


def split(s, comments=False, posix=True):
    if not posix:
        raise NotImplementedError("split(posix=False) is not supported")
    words, word, quote, i = [], None, "", 0
    while i < len(s):
        c = s[i]
        i += 1
        if quote == "'":
            if c == "'":
                quote = ""
            else:
                word += c
        elif c == "\\":
            if i == len(s):
                raise ValueError("No escaped character")
            # In double quotes only those lose their backslash.
            word = (word or "") + ("\\" if quote and s[i] not in '"\\' else "") + s[i]
            i += 1
        elif quote:
            if c == '"':
                quote = ""
            else:
                word += c
        elif c in "'\"":
            quote, word = c, word or ""
        elif c in " \t\r\n":
            if word is not None:
                words.append(word)
            word = None
        elif c == "#" and comments and word is None:
            while i < len(s) and s[i] != "\n":
                i += 1
        else:
            word = (word or "") + c
    if quote:
        raise ValueError("No closing quotation")
    if word is not None:
        words.append(word)
    return words


def quote(s):
    if s and all(c in _SAFE for c in s):
        return s
    return "'" + s.replace("'", "'\"'\"'") + "'"


def join(split_command):
    return " ".join(quote(word) for word in split_command)
