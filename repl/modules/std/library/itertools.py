"""itertools: iterators over iterators; all are lazy."""


def count(start=0, step=1):
    while True:
        yield start
        start += step


def cycle(iterable):
    # Kept as they come: an iterator cannot be asked twice.
    saved = []
    for item in iterable:
        yield item
        saved.append(item)
    while saved:
        yield from saved


def repeat(obj, times=None):
    if times is None:
        while True:
            yield obj
    for _ in range(times):
        yield obj


def accumulate(iterable, func=None, *, initial=None):
    total, empty = initial, initial is None
    if not empty:
        yield total
    for item in iterable:
        total = item if empty else (total + item if func is None else func(total, item))
        empty = False
        yield total


def _chained(iterables):
    for iterable in iterables:
        yield from iterable


class chain:
    # A class for the sake of from_iterable(); the work is the generator's.
    def __init__(self, *iterables):
        self._items = _chained(iterables)

    @classmethod
    def from_iterable(cls, iterables):
        made = cls()
        made._items = _chained(iterables)
        return made

    def __iter__(self):
        return self._items

    def __next__(self):
        return next(self._items)


def compress(data, selectors):
    for item, wanted in zip(data, selectors):
        if wanted:
            yield item


def dropwhile(predicate, iterable):
    dropping = True
    for item in iterable:
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


def takewhile(predicate, iterable):
    for item in iterable:
        if not predicate(item):
            return
        yield item


def filterfalse(predicate, iterable):
    for item in iterable:
        if not (item if predicate is None else predicate(item)):
            yield item


def groupby(iterable, key=None):
    items = iter(iterable)
    end = object()
    item = now = end

    def advance():
        nonlocal item, now
        item = next(items, end)
        now = item if item is end or key is None else key(item)

    def group_of(wanted):
        # Until the first element of another group, where the loop below goes on. A group that it has left is empty.
        while item is not end and now == wanted:
            yield item
            advance()

    advance()
    while item is not end:
        wanted = now
        group = group_of(wanted)
        yield wanted, group
        for _ in group:
            pass


def islice(iterable, *bounds):
    # A slice gives one, two or three bounds Python's meaning.
    limits = slice(*bounds)
    for bound in (limits.start, limits.stop):
        if bound is not None and (not isinstance(bound, int) or bound < 0):
            which = "Stop argument" if len(bounds) == 1 else "Indices"
            raise ValueError(f"{which} for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    step = 1 if limits.step is None else limits.step
    if not isinstance(step, int) or step < 1:
        raise ValueError("Step for islice() must be a positive integer or None.")
    # By a generator of its own: in a generator the checks would wait for the first element.
    return _sliced(iterable, limits.start or 0, limits.stop, step)


def _sliced(iterable, start, stop, step):
    if stop is not None and start >= stop:
        return
    wanted = start
    for i, item in enumerate(iterable):
        if i == wanted:
            yield item
            wanted += step
        # Before the next element is taken, so that the rest stays in the iterator.
        if stop is not None and i + 1 >= stop:
            return


def pairwise(iterable):
    first = True
    before = None
    for item in iterable:
        if not first:
            yield before, item
        before, first = item, False


def batched(iterable, n):
    if n < 1:
        raise ValueError("n must be at least one")
    # Apart for the same reason as in islice(): the check must come at the call.
    return _batches(iterable, n)


def _batches(iterable, n):
    batch = []
    for item in iterable:
        batch.append(item)
        if len(batch) == n:
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)


def starmap(function, iterable):
    for args in iterable:
        yield function(*args)


def tee(iterable, n=2):
    if n < 0:
        raise ValueError("n must be >= 0")
    items = iter(iterable)
    queues = [[] for _ in range(n)]

    def one(queue):
        # An object of its own, since an element may be None.
        end = object()
        while True:
            if not queue:
                item = next(items, end)
                if item is end:
                    return
                # Into its own queue as well, from which it is taken next.
                for q in queues:
                    q.append(item)
            yield queue.pop(0)

    return tuple(one(q) for q in queues)


def zip_longest(*iterables, fillvalue=None):
    end = object()
    its = [iter(i) for i in iterables]
    # Without any iterable there is no row; all() of nothing would be true.
    while its:
        row = [next(i, end) for i in its]
        if all(v is end for v in row):
            return
        yield tuple(fillvalue if v is end else v for v in row)


def product(*iterables, repeat=1):
    if repeat < 0:
        raise ValueError("repeat argument cannot be negative")
    # Tuples, since each iterable is gone through many times.
    return _products([tuple(i) for i in iterables] * repeat)


def _products(pools):
    sizes = [len(p) for p in pools]
    # An empty one leaves no product, and the digits below have none to start with.
    if 0 in sizes:
        return
    at = [0] * len(pools)
    while True:
        # The places count like the digits of a number, the last one fastest.
        yield tuple(p[i] for p, i in zip(pools, at))
        place = len(at) - 1
        while place >= 0 and at[place] == sizes[place] - 1:
            at[place] = 0
            place -= 1
        if place < 0:
            return
        at[place] += 1


def _checked(r):
    if r < 0:
        raise ValueError("r must be non-negative")
    return r


def permutations(iterable, r=None):
    pool = tuple(iterable)
    return _permutations(pool, len(pool) if r is None else _checked(r))


def _permutations(pool, r):
    def extend(chosen):
        if len(chosen) == r:
            yield tuple(pool[i] for i in chosen)
            return
        for i in range(len(pool)):
            # By place and not by value: equal elements are different choices.
            if i not in chosen:
                yield from extend(chosen + [i])

    if r <= len(pool):
        yield from extend([])


def combinations(iterable, r):
    return _combinations(tuple(iterable), _checked(r))


def _combinations(pool, r):
    at = list(range(r))
    if r > len(pool):
        return
    while True:
        yield tuple(pool[i] for i in at)
        place = r - 1
        # At its highest a place leaves room for just those behind it.
        while place >= 0 and at[place] == place + len(pool) - r:
            place -= 1
        if place < 0:
            return
        at[place] += 1
        # What follows is as low as it can be: places rise from left to right.
        for i in range(place + 1, r):
            at[i] = at[i - 1] + 1


def combinations_with_replacement(iterable, r):
    return _repeated_combinations(tuple(iterable), _checked(r))


def _repeated_combinations(pool, r):
    if not pool and r:
        return
    at = [0] * r
    while True:
        yield tuple(pool[i] for i in at)
        place = r - 1
        while place >= 0 and at[place] == len(pool) - 1:
            place -= 1
        if place < 0:
            return
        # Places may be equal here, so what follows starts at the same one.
        at[place:] = [at[place] + 1] * (r - place)
