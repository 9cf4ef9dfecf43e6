"""logging: messages with a level, written to stderr."""
import sys as _sys
import time as _time

CRITICAL = FATAL = 50
ERROR = 40
WARNING = WARN = 30
INFO = 20
DEBUG = 10
NOTSET = 0
_names = {50: "CRITICAL", 40: "ERROR", 30: "WARNING", 20: "INFO", 10: "DEBUG", 0: "NOTSET"}
BASIC_FORMAT = "%(levelname)s:%(name)s:%(message)s"


def getLevelName(level):
    if isinstance(level, str):
        # Both ways, as in Python: of a number the name, of a name the number.
        return next((n for n, name in _names.items() if name == level), f"Level {level}")
    return _names.get(level, f"Level {level}")


def addLevelName(level, name):
    _names[level] = name


def _level(level):
    if isinstance(level, int):
        return level
    number = getLevelName(level)
    if not isinstance(number, int):
        raise ValueError(f"Unknown level: {level!r}")
    return number


class LogRecord:
    def __init__(self, name, levelno, msg, args, exc_info=None):
        self.name = name
        self.levelno = levelno
        self.levelname = getLevelName(levelno)
        self.msg = msg
        self.args = args
        self.exc_info = exc_info
        self.created = _time.time()
        self.msecs = int(self.created * 1000) % 1000
        # Where the call stands is not known, as there are no frames. Formats that name it still work.
        self.filename = self.pathname = self.module = self.funcName = "-"
        self.lineno = self.process = self.thread = 0
        self.threadName, self.processName = "MainThread", "MainProcess"

    def getMessage(self):
        text = str(self.msg)
        if not self.args:
            return text
        # One dict stands for the names of a format such as %(loss)s.
        return text % (self.args[0] if len(self.args) == 1 and isinstance(self.args[0], dict) else self.args)


class Formatter:
    def __init__(self, fmt=None, datefmt=None, style="%", validate=True):
        self._fmt = fmt or "%(message)s"
        self.datefmt = datefmt
        self._style = style

    def formatTime(self, record, datefmt=None):
        if datefmt:
            return _time.strftime(datefmt, _time.localtime(record.created))
        # Python's own default, with a comma before the milliseconds.
        return _time.strftime("%Y-%m-%d %H:%M:%S", _time.localtime(record.created)) + f",{record.msecs:03d}"

    def format(self, record):
        values = dict(record.__dict__)
        values["message"] = record.getMessage()
        values["asctime"] = self.formatTime(record, self.datefmt)
        out = self._fmt % values if self._style == "%" else self._fmt.format(**values)
        if record.exc_info:
            # Without the calls that led to it, which an exception does not keep.
            out += f"\n{type(record.exc_info).__name__}: {record.exc_info}"
        return out


class Filter:
    def __init__(self, name=""):
        self.name = name

    def filter(self, record):
        # The logger itself and those below it: "a" takes "a.b" and not "ab".
        return not self.name or record.name == self.name or record.name.startswith(self.name + ".")


class _Filtered:
    def addFilter(self, f):
        self.filters.append(f)

    def removeFilter(self, f):
        self.filters.remove(f)

    def _passes(self, record):
        # Since Python 3.2 a plain function is a filter too.
        return all((f.filter(record) if hasattr(f, "filter") else f(record)) for f in self.filters)


class Handler(_Filtered):
    def __init__(self, level=NOTSET):
        self.level = _level(level)
        self.formatter = None
        self.filters = []

    def setLevel(self, level):
        self.level = _level(level)

    def setFormatter(self, formatter):
        self.formatter = formatter

    def format(self, record):
        return (self.formatter or Formatter()).format(record)

    def handle(self, record):
        if record.levelno >= self.level and self._passes(record):
            self.emit(record)

    def emit(self, record):
        raise NotImplementedError("emit must be implemented by Handler subclasses")

    def flush(self):
        pass

    def close(self):
        pass


class StreamHandler(Handler):
    def __init__(self, stream=None):
        super().__init__()
        # The stderr of that moment, as in Python: a stream that is exchanged later is not followed.
        self.stream = stream or _sys.stderr

    def emit(self, record):
        self.stream.write(self.format(record) + "\n")


class FileHandler(StreamHandler):
    def __init__(self, filename, mode="a", encoding=None, delay=False):
        super().__init__(open(filename, mode))

    def close(self):
        self.stream.close()


class NullHandler(Handler):
    def emit(self, record):
        pass


class Logger(_Filtered):
    def __init__(self, name, level=NOTSET):
        self.name = name
        self.level = level
        self.handlers = []
        self.filters = []
        self.parent = None
        self.propagate = True
        self.disabled = False

    def setLevel(self, level):
        self.level = _level(level)

    def getEffectiveLevel(self):
        logger = self
        while logger is not None:
            if logger.level:
                # 0 is NOTSET: the level is that of the logger above.
                return logger.level
            logger = logger.parent
        return NOTSET

    def isEnabledFor(self, level):
        return not self.disabled and level > _disabled[0] and level >= self.getEffectiveLevel()

    def addHandler(self, handler):
        if handler not in self.handlers:
            self.handlers.append(handler)

    def removeHandler(self, handler):
        if handler in self.handlers:
            self.handlers.remove(handler)

    def hasHandlers(self):
        logger = self
        while logger is not None:
            if logger.handlers:
                return True
            logger = logger.parent if logger.propagate else None
        return False

    def getChild(self, suffix):
        # Names below the root have no prefix.
        return getLogger(suffix if self is root else self.name + "." + suffix)

    def log(self, level, msg, *args, exc_info=None, extra=None, stacklevel=1, stack_info=False):
        level = _level(level)
        if not self.isEnabledFor(level):
            return
        if exc_info is True:
            exc_info = _sys.exc_info()[1]
        record = LogRecord(self.name, level, msg, args, exc_info)
        if extra:
            record.__dict__.update(extra)
        if not self._passes(record):
            return
        logger, handled = self, False
        while logger is not None:
            for handler in logger.handlers:
                handled = True
                handler.handle(record)
            logger = logger.parent if logger.propagate else None
        # Python's handler of last resort: warnings are seen although nobody has set up logging.
        if not handled and level >= WARNING:
            _sys.stderr.write(record.getMessage() + "\n")

    def debug(self, msg, *args, **kwargs):
        self.log(DEBUG, msg, *args, **kwargs)

    def info(self, msg, *args, **kwargs):
        self.log(INFO, msg, *args, **kwargs)

    def warning(self, msg, *args, **kwargs):
        self.log(WARNING, msg, *args, **kwargs)

    warn = warning

    def error(self, msg, *args, **kwargs):
        self.log(ERROR, msg, *args, **kwargs)

    def exception(self, msg, *args, **kwargs):
        self.log(ERROR, msg, *args, **{"exc_info": True, **kwargs})

    def critical(self, msg, *args, **kwargs):
        self.log(CRITICAL, msg, *args, **kwargs)

    fatal = critical

    def __repr__(self):
        return f"<Logger {self.name} ({getLevelName(self.getEffectiveLevel())})>"


class LoggerAdapter:
    def __init__(self, logger, extra=None):
        self.logger, self.extra = logger, extra

    def __getattr__(self, name):
        return getattr(self.logger, name)


_disabled = [NOTSET]
root = Logger("root", WARNING)
_loggers = {}


def getLogger(name=None):
    if not name or name == "root":
        return root
    if name not in _loggers:
        logger = _loggers[name] = Logger(name)
        parent = name.rpartition(".")[0]
        # A logger of that name need not exist; the next one above stands in until it does.
        while parent and parent not in _loggers:
            parent = parent.rpartition(".")[0]
        logger.parent = _loggers.get(parent, root)
        for other in _loggers.values():  # those below it that were there before
            if other.name.startswith(name + ".") and len(other.parent.name) < len(name):
                other.parent = logger
            elif other.name.startswith(name + ".") and other.parent is root:
                other.parent = logger
    return _loggers[name]


def basicConfig(*, filename=None, filemode="a", format=None, datefmt=None, style="%", level=None, stream=None,
                handlers=None, force=False, encoding=None):
    if force:
        root.handlers.clear()
    if root.handlers:
        # The first call wins: a library that calls it later must not change what the script chose.
        return
    if handlers is None:
        handlers = [FileHandler(filename, filemode) if filename else StreamHandler(stream)]
    for handler in handlers:
        if handler.formatter is None:
            handler.setFormatter(Formatter(format or BASIC_FORMAT, datefmt, style))
        root.addHandler(handler)
    if level is not None:
        root.setLevel(level)


def disable(level=CRITICAL):
    _disabled[0] = level


def captureWarnings(capture):
    pass


def _ready():
    # Only the functions of the module do this; a logger of one's own is left as it is.
    if not root.handlers:
        basicConfig()


def log(level, msg, *args, **kwargs):
    _ready()
    root.log(level, msg, *args, **kwargs)


def debug(msg, *args, **kwargs):
    log(DEBUG, msg, *args, **kwargs)


def info(msg, *args, **kwargs):
    log(INFO, msg, *args, **kwargs)


def warning(msg, *args, **kwargs):
    log(WARNING, msg, *args, **kwargs)


warn = warning


def error(msg, *args, **kwargs):
    log(ERROR, msg, *args, **kwargs)


def exception(msg, *args, **kwargs):
    log(ERROR, msg, *args, **{"exc_info": True, **kwargs})


def critical(msg, *args, **kwargs):
    log(CRITICAL, msg, *args, **kwargs)


def shutdown():
    pass
