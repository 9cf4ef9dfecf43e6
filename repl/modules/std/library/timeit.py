"""timeit: the time of a call. %bench measures better."""
from time import perf_counter as default_timer


def timeit(stmt, setup=None, timer=default_timer, number=1000000, globals=None):
    if not callable(stmt):
        raise NotImplementedError("timeit() of a text is not supported: give a function")
    if callable(setup):
        setup()
    start = timer()
    for _ in range(number):
        stmt()
    return timer() - start


def repeat(stmt, setup=None, timer=default_timer, repeat=5, number=1000000, globals=None):
    return [timeit(stmt, setup, timer, number) for _ in range(repeat)]
