"""heapq: a list as a heap, smallest first."""


def heappush(heap, item):
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)


def _rise(heap, top, i):
    item = heap[i]
    while i > top and item < heap[(i - 1) // 2]:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = item


def _sink(heap, i):
    """To a leaf along the lesser children, and back up: equal items end where CPython has them."""
    item, top = heap[i], i
    while 2 * i + 1 < len(heap):
        child = 2 * i + 1
        # `not <` so that of equal children the right one rises, as in CPython.
        if child + 1 < len(heap) and not heap[child] < heap[child + 1]:
            child += 1
        heap[i] = heap[child]
        i = child
    heap[i] = item
    _rise(heap, top, i)


def heappop(heap):
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    if not heap:
        return last
    # The last element fills the root, and sinks from there.
    first, heap[0] = heap[0], last
    _sink(heap, 0)
    return first


def heapify(heap):
    for i in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, i)


def heappushpop(heap, item):
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _sink(heap, 0)
    return item


def heapreplace(heap, item):
    if not heap:
        raise IndexError("index out of range")
    first, heap[0] = heap[0], item
    _sink(heap, 0)
    return first


def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[:max(n, 0)]


def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[:max(n, 0)]


def merge(*iterables, key=None, reverse=False):
    """Of equal items those of the earlier iterable come first."""
    end = object()
    heads = []
    for items in [iter(i) for i in iterables]:
        item = next(items, end)
        if item is not end:
            heads.append([item if key is None else key(item), item, items])
    while heads:
        best = heads[0]
        for head in heads[1:]:
            # Of equal heads the earlier iterable keeps its turn.
            if best[0] < head[0] if reverse else head[0] < best[0]:
                best = head
        yield best[1]
        item = next(best[2], end)
        if item is end:
            heads = [h for h in heads if h is not best]
        else:
            best[0], best[1] = item if key is None else key(item), item
