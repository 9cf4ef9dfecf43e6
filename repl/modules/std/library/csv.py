"""csv: tables written line by line."""

QUOTE_MINIMAL, QUOTE_ALL, QUOTE_NONNUMERIC, QUOTE_NONE = 0, 1, 2, 3


def _quoted(value, delimiter):
    text = "" if value is None else str(value)
    # A quote or a line break must be inside of quotes; so must the delimiter.
    if delimiter in text or any(c in text for c in '"\n\r'):
        text = '"' + text.replace('"', '""') + '"'
    return text


def _plain(dialect, quotechar, quoting):
    """What there is of the options: tables in quotes where they are needed."""
    if dialect not in (None, "excel") or quotechar != '"' or quoting != QUOTE_MINIMAL:
        raise NotImplementedError("csv has the dialect excel, with quotes where they are needed")


class writer:
    def __init__(self, file, dialect=None, delimiter=",", lineterminator="\r\n", quotechar='"', quoting=QUOTE_MINIMAL):
        _plain(dialect, quotechar, quoting)
        self._file, self._delimiter, self._end = file, delimiter, lineterminator

    def writerow(self, row):
        return self._file.write(self._delimiter.join(_quoted(v, self._delimiter) for v in row) + self._end)

    def writerows(self, rows):
        for row in rows:
            self.writerow(row)


class DictWriter:
    def __init__(self, f, fieldnames, restval="", extrasaction="raise", dialect=None, **kwargs):
        self.fieldnames, self._rest, self._extras = list(fieldnames), restval, extrasaction
        self.writer = writer(f, dialect, **kwargs)

    def writeheader(self):
        return self.writer.writerow(self.fieldnames)

    def writerow(self, row):
        more = [k for k in row if k not in self.fieldnames]
        if more and self._extras == "raise":
            raise ValueError("dict contains fields not in fieldnames: " + ", ".join(repr(k) for k in more))
        return self.writer.writerow([row.get(k, self._rest) for k in self.fieldnames])

    def writerows(self, rows):
        for row in rows:
            self.writerow(row)


def reader(lines, dialect=None, delimiter=",", quotechar='"', quoting=QUOTE_MINIMAL):
    _plain(dialect, quotechar, quoting)
    return _rows(lines, delimiter)


def _rows(lines, delimiter):
    rest = ""
    for line in lines:
        rest += line
        # An odd number of quotes: the field goes on in the next line.
        if rest.count('"') % 2:
            continue
        row, at, rest = [], rest.rstrip("\r\n"), ""
        while at or row:
            if at.startswith('"'):
                end = 1
                while end < len(at) and (at[end] != '"' or at[end:end + 2] == '""'):
                    end += 2 if at[end] == '"' else 1
                row.append(at[1:end].replace('""', '"'))
                # Whatever stands between the closing quote and the delimiter is taken for the delimiter.
                at = at[end + 1:]
                mark, at = at[:1], at[1:]
            else:
                value, mark, at = at.partition(delimiter)
                row.append(value)
            if not mark:
                break
        yield row


class DictReader:
    def __init__(self, f, fieldnames=None, restkey=None, restval=None, **kwargs):
        self.reader = reader(f, **kwargs)
        self.fieldnames = list(next(self.reader, [])) if fieldnames is None else list(fieldnames)
        self.restkey, self.restval = restkey, restval

    def __iter__(self):
        return self

    def __next__(self):
        row = next(self.reader)
        while not row:
            row = next(self.reader)
        names, n = self.fieldnames, len(row)
        out = dict(zip(names, row))
        if n > len(names):
            out[self.restkey] = row[len(names):]
        for name in names[n:]:
            out[name] = self.restval
        return out
