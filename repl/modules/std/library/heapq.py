"""heapq: a list as a heap, smallest first."""


def heappush(heap, item):
    heap.append(item)
    i = len(heap) - 1
    while i > 0 and heap[i] < heap[(i - 1) // 2]:
        heap[i], heap[(i - 1) // 2] = heap[(i - 1) // 2], heap[i]
        i = (i - 1) // 2


def _sink(heap, i):
    while True:
        least = i
        for child in (2 * i + 1, 2 * i + 2):
            if child < len(heap) and heap[child] < heap[least]:
                least = child
        if least == i:
            return
        heap[i], heap[least] = heap[least], heap[i]
        i = least


def heappop(heap):
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    if not heap:
        return last
    first, heap[0] = heap[0], last
    _sink(heap, 0)
    return first


def heapify(heap):
    for i in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, i)


def heappushpop(heap, item):
    heappush(heap, item)
    return heappop(heap)


def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[:n]


def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[:n]
