"""tqdm: progress bars of loops, on standard error."""
import sys as _sys
import time as _time


class tqdm:
    def __init__(self, iterable=None, desc=None, total=None, leave=True, file=None, ncols=None, mininterval=0.1,
                 maxinterval=10.0, miniters=None, ascii=None, disable=False, unit="it", unit_scale=False,
                 dynamic_ncols=False, smoothing=0.3, bar_format=None, initial=0, position=None, postfix=None, **kwargs):
        self.iterable, self.desc, self.leave, self.unit = iterable, desc or "", leave, unit
        self.total = len(iterable) if total is None and hasattr(iterable, "__len__") else total
        self.file, self.mininterval = file, mininterval
        # None: shown on a terminal alone, as tqdm means it.
        self.disable = not _sys.stderr.isatty() if disable is None else bool(disable)
        self.n, self.initial, self.unit_scale = initial, initial, unit_scale
        self.start_t = _time.time()
        self.last_print_t, self._width, self._closed = 0.0, 0, False
        self.postfix = ", ".join(f"{k}={v}" for k, v in dict(postfix).items()) if postfix else ""
        self.refresh()

    def __iter__(self):
        try:
            for item in self.iterable:
                yield item
                self.update()
        finally:
            self.close()

    def __len__(self):
        return self.total

    def __bool__(self):
        return self.total is None or self.total > 0

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.close()

    @property
    def format_dict(self):
        return {"n": self.n, "total": self.total, "elapsed": _time.time() - self.start_t, "unit": self.unit}

    def update(self, n=1):
        self.n += n
        if _time.time() - self.last_print_t >= self.mininterval:
            self.refresh()

    def _count(self, number):
        if not self.unit_scale or number is None:
            return str(number)
        for sign in ("", "k", "M", "G", "T"):
            if abs(number) < 1000 or sign == "T":
                return f"{number:.3g}{sign}"
            number /= 1000

    def __str__(self):
        seconds = _time.time() - self.start_t
        done = self.n - self.initial
        speed = f"{done / seconds:.2f}{self.unit}/s" if seconds > 0 and done else f"?{self.unit}/s"
        start = self.desc + ": " if self.desc else ""
        behind = f", {self.postfix}" if self.postfix else ""
        if not self.total:
            return f"{start}{self._count(self.n)}{self.unit} [{_clock(seconds)}, {speed}{behind}]"
        share = min(self.n / self.total, 1)
        left = _clock(seconds / done * (self.total - self.n)) if done else "?"
        bar = ("█" * int(share * 10)).ljust(10)
        return f"{start}{share:4.0%}|{bar}| {self._count(self.n)}/{self._count(self.total)} " \
               f"[{_clock(seconds)}<{left}, {speed}{behind}]"

    def refresh(self, *args, **kwargs):
        if self.disable or self._closed:
            return
        self.last_print_t = _time.time()
        text = str(self)
        (self.file or _sys.stderr).write("\r" + text.ljust(self._width))
        self._width = len(text)

    def set_description(self, desc=None, refresh=True):
        self.desc = desc or ""
        if refresh:
            self.refresh()

    def set_description_str(self, desc=None, refresh=True):
        self.set_description(desc, refresh)

    def set_postfix(self, ordered_dict=None, refresh=True, **kwargs):
        values = {**(ordered_dict or {}), **kwargs}
        self.postfix = ", ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items())
        if refresh:
            self.refresh()

    def set_postfix_str(self, s="", refresh=True):
        self.postfix = str(s)
        if refresh:
            self.refresh()

    def reset(self, total=None):
        self.n, self.start_t = 0, _time.time()
        self.total = self.total if total is None else total
        self.refresh()

    def clear(self, *args, **kwargs):
        if not self.disable and self._width:
            (self.file or _sys.stderr).write("\r" + " " * self._width + "\r")

    def close(self):
        if self._closed:
            return
        if self.leave:
            self.refresh()
            if not self.disable:
                (self.file or _sys.stderr).write("\n")
        else:
            self.clear()
        self._closed = True

    @classmethod
    def write(cls, s, file=None, end="\n", nolock=False):
        (file or _sys.stdout).write(str(s) + end)


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


def trange(*args, **kwargs):
    return tqdm(range(*args), **kwargs)
