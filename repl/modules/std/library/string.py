"""string: characters by their class."""
ascii_lowercase = "abcdefghijklmnopqrstuvwxyz"
ascii_uppercase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ascii_letters = ascii_lowercase + ascii_uppercase
digits = "0123456789"
hexdigits = digits + "abcdef" + "ABCDEF"
octdigits = "01234567"
punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
whitespace = " \t\n\r\x0b\x0c"
printable = digits + ascii_letters + punctuation + whitespace


def capwords(s, sep=None):
    return (" " if sep is None else sep).join(word.capitalize() for word in s.split(sep))


class Template:
    def __init__(self, template):
        self.template = template

    def _fill(self, values, safe):
        out, text = "", self.template
        while text:
            before, mark, text = text.partition("$")
            out += before
            if not mark:
                break
            if text[:1] == "$":
                out, text = out + "$", text[1:]
                continue
            braces = text[:1] == "{"
            end = 1 if braces else 0
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
            name = text[1:end] if braces else text[:end]
            if not name or (braces and text[end:end + 1] != "}"):
                if not safe:
                    raise ValueError("Invalid placeholder in string")
                out += "$"
                continue
            rest = text[end + 1:] if braces else text[end:]
            if name in values:
                out += str(values[name])
            elif safe:
                out += "$" + text[:len(text) - len(rest)]
            else:
                raise KeyError(name)
            text = rest
        return out

    def substitute(self, mapping={}, **kwargs):
        return self._fill({**mapping, **kwargs}, False)

    def safe_substitute(self, mapping={}, **kwargs):
        return self._fill({**mapping, **kwargs}, True)
