"""io: texts and bytes in memory that are read and written as files are."""
SEEK_SET, SEEK_CUR, SEEK_END = 0, 1, 2
open = open


class UnsupportedOperation(OSError, ValueError):
    pass


class IOBase:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __iter__(self):
        return self

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line


class TextIOBase(IOBase):
    pass


class _Memory(IOBase):
    def _start(self, initial):
        self._data, self._at, self.closed = initial, 0, False

    def _check(self):
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def read(self, size=-1, /):
        self._check()
        # A place behind the end reads nothing and does not move.
        end = len(self._data) if size is None or size < 0 else min(len(self._data), self._at + size)
        out = self._data[self._at:end]
        self._at = max(self._at, end)
        return out

    def readline(self, size=-1, /):
        self._check()
        end = self._data.find(self._newline, self._at)
        end = len(self._data) if end < 0 else end + 1
        if size is not None and size >= 0:
            end = min(end, self._at + size)
        out = self._data[self._at:end]
        self._at = max(self._at, end)
        return out

    def readlines(self, hint=-1, /):
        out, length = [], 0
        for line in self:
            out.append(line)
            length += len(line)
            if hint is not None and 0 < hint <= length:
                break
        return out

    def write(self, data, /):
        self._check()
        self._expect(data)
        if self._at > len(self._data):
            # What was skipped is filled up with zeros, as a file's hole is.
            self._data += self._fill * (self._at - len(self._data))
        self._data = self._data[:self._at] + data + self._data[self._at + len(data):]
        self._at += len(data)
        return len(data)

    def writelines(self, lines, /):
        for line in lines:
            self.write(line)

    def getvalue(self):
        self._check()
        return self._data

    def seek(self, offset, whence=0, /):
        self._check()
        at = offset + (self._at if whence == 1 else len(self._data) if whence == 2 else 0)
        if at < 0:
            raise ValueError(f"negative seek position {at}")
        self._at = at
        return at

    def tell(self):
        self._check()
        return self._at

    def truncate(self, size=None, /):
        self._check()
        size = self._at if size is None else size
        self._data = self._data[:size]
        # The place stays, even behind the new end.
        return size

    def flush(self):
        self._check()

    def close(self):
        self.closed = True

    def readable(self):
        return True

    def writable(self):
        return True

    def seekable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        raise UnsupportedOperation("fileno")


class StringIO(_Memory, TextIOBase):
    _newline, _fill = "\n", "\0"

    def __init__(self, initial_value="", newline="\n"):
        self._start("" if initial_value is None else initial_value)
        self._expect(self._data)

    def _expect(self, data):
        if not isinstance(data, str):
            raise TypeError(f"string argument expected, got '{type(data).__name__}'")


class BytesIO(_Memory):
    _newline, _fill = b"\n", b"\0"

    def __init__(self, initial_bytes=b""):
        self._start(bytes(initial_bytes))

    def _expect(self, data):
        if not isinstance(data, (bytes, bytearray)):
            raise TypeError(f"a bytes-like object is required, not '{type(data).__name__}'")

    def getbuffer(self):
        return self.getvalue()
