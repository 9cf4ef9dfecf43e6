"""contextlib: what stands in `with`."""
import sys
from functools import wraps


class AbstractContextManager:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        return None


class ContextDecorator:
    def __call__(self, function):
        @wraps(function)
        def inner(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return inner

    def _again(self):
        return self


class _Manager(ContextDecorator):
    def __init__(self, function, args, kwargs):
        # Kept for a decorator, each of whose calls needs a generator of its own.
        self._made = function, args, kwargs
        self.gen = function(*args, **kwargs)

    def _again(self):
        return _Manager(*self._made)

    def __enter__(self):
        try:
            return next(self.gen)
        except StopIteration:
            raise RuntimeError("generator didn't yield") from None

    def __exit__(self, kind, value, traceback):
        if kind is None:
            try:
                next(self.gen)
            except StopIteration:
                return False
            raise RuntimeError("generator didn't stop")
        try:
            self.gen.throw(value)
        except StopIteration as e:
            # The same StopIteration that was thrown in was not handled.
            return e is not value
        except BaseException as e:
            if e is value:
                # False: the `with` raises it again, with the place where it came from.
                return False
            raise
        raise RuntimeError("generator didn't stop after throw()")


def contextmanager(function):
    @wraps(function)
    def make(*args, **kwargs):
        return _Manager(function, args, kwargs)

    return make


class nullcontext(AbstractContextManager):
    def __init__(self, enter_result=None):
        self.enter_result = enter_result

    def __enter__(self):
        return self.enter_result


class closing(AbstractContextManager):
    def __init__(self, thing):
        self.thing = thing

    def __enter__(self):
        return self.thing

    def __exit__(self, *exc):
        self.thing.close()


class suppress(AbstractContextManager):
    def __init__(self, *exceptions):
        self._exceptions = exceptions

    def __exit__(self, kind, value, traceback):
        return kind is not None and issubclass(kind, self._exceptions)


class _Redirect(AbstractContextManager):
    def __init__(self, new_target):
        self._target = new_target
        # A stack, since the same object may be entered twice.
        self._old = []

    def __enter__(self):
        self._old.append(getattr(sys, self._stream))
        setattr(sys, self._stream, self._target)
        return self._target

    def __exit__(self, *exc):
        setattr(sys, self._stream, self._old.pop())


class redirect_stdout(_Redirect):
    _stream = "stdout"


class redirect_stderr(_Redirect):
    _stream = "stderr"


class ExitStack:
    def __init__(self):
        self._exits = []

    def __enter__(self):
        return self

    def enter_context(self, manager):
        value = manager.__enter__()
        # After __enter__, so that one that fails is not left.
        self._exits.append(manager.__exit__)
        return value

    def push(self, exit):
        self._exits.append(exit.__exit__ if hasattr(exit, "__exit__") else exit)
        return exit

    def callback(self, function, *args, **kwargs):
        def run(kind, value, traceback):
            # What a callback gives is no answer to the exception.
            function(*args, **kwargs)

        self._exits.append(run)
        return function

    def pop_all(self):
        other = ExitStack()
        other._exits, self._exits = self._exits, []
        return other

    def close(self):
        self.__exit__(None, None, None)

    def __exit__(self, kind, value, traceback):
        raised, swallowed = None, False
        # The last first. One that raises gives those below it its own exception to see.
        while self._exits:
            leave = self._exits.pop()
            try:
                if leave(kind, value, None) and kind is not None:
                    kind, value, raised, swallowed = None, None, None, True
            except BaseException as e:
                kind, value, raised = type(e), e, e
        if raised is not None:
            raise raised
        return swallowed
