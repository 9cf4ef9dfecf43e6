"""Elements that are put by tensors of places, against the same elements one by one: random ranks, orders and dtypes."""
import random
import torch


def positions(x, index):
    """Where the elements lie in row-major order, by looking the numbers of all elements up."""
    return torch.arange(x.numel()).reshape(x.shape)[index].reshape(-1).tolist()


def expected(x, at, values, combine):
    flat = x.reshape(-1).tolist()
    for i, v in zip(at, values):
        flat[i] = combine(flat[i], v)
    return flat


def same(what, got, want):
    if got.reshape(-1).tolist() != want:
        raise AssertionError(f"{what}: {got.reshape(-1).tolist()} for {want}")


def places(size, shape, least):
    return torch.randint(least, size, shape)


torch.manual_seed(5)
random.seed(5)
for case in range(150):
    rank = random.randrange(1, 5)
    shape = [random.randrange(1, 6) for _ in range(rank)]
    dtype = random.choice([torch.float32, torch.float64, torch.int64, torch.int32, torch.float16, torch.uint8])
    x = torch.randint(0, 50, shape).to(dtype)
    if rank > 1 and random.random() < 0.3:
        x = x.transpose(0, rank - 1)
    kinds, index = random.choice([(2,), (3, 1), (1,), (2, 2)]), []
    for d in range(rank):
        index.append(random.choice([places(x.shape[d], kinds, -x.shape[d]), slice(None), slice(0, None, 2),
                                    random.randrange(-x.shape[d], x.shape[d])]))
        if random.random() < 0.1:
            index.append(None)
    index.append(...)
    index[0] = places(x.shape[0], kinds, -x.shape[0])
    index = tuple(index)
    at = positions(x, index)
    values = torch.randint(0, 4, x[index].shape).to(dtype)
    y = x.clone()
    y[index] = values
    same(f"{case} set", y, expected(x, at, values.reshape(-1).tolist(), lambda old, new: new))
    y = x.clone()
    y[index] = 3
    same(f"{case} set to a number", y, expected(x, at, [3] * len(at), lambda old, new: new))
    # Rows along one dimension, and tensors of places alone.
    d = random.randrange(rank)
    rows = places(x.shape[d], (random.randrange(0, 7),), 0)
    at = positions(x, (slice(None),) * d + (rows,))
    source = torch.randint(0, 4, [rows.numel() if k == d else n for k, n in enumerate(x.shape)]).to(dtype)
    add = lambda old, new: old + new
    same(f"{case} rows", x.clone().index_add_(d, rows, source), expected(x, at, source.reshape(-1).tolist(), add))
    alone = tuple(places(n, kinds, -n) for n in x.shape[: d + 1])
    at = positions(x, alone)
    values = torch.randint(0, 4, x[alone].shape).to(dtype)
    same(f"{case} accumulated", x.clone().index_put_(alone, values, accumulate=True),
         expected(x, at, values.reshape(-1).tolist(), add))
    one = torch.ones((), dtype=dtype)
    same(f"{case} one value for all", x.clone().index_put_(alone, one, accumulate=True),
         expected(x, at, [1] * len(at), add))
print("same")
