"""torch.utils.data: batches of a dataset. They are made when they are asked for: a script has one thread."""
import math

import torch


class Dataset:
    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class TensorDataset(Dataset):
    """Rows of tensors that have as many of them."""

    def __init__(self, *tensors):
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise AssertionError(f"TensorDataset takes tensors of as many rows, got {[t.shape[0] for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]


class Subset(Dataset):
    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __len__(self):
        return len(self.indices)


class ConcatDataset(Dataset):
    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset takes at least one dataset")

    def __getitem__(self, idx):
        if not -len(self) <= idx < len(self):
            raise ValueError(f"index {idx} of a dataset of {len(self)} elements")
        idx %= len(self)
        for dataset in self.datasets:
            if idx < len(dataset):
                return dataset[idx]
            idx -= len(dataset)

    def __len__(self):
        return sum(len(d) for d in self.datasets)


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from d

    def __len__(self):
        return sum(len(d) for d in self.datasets)


class StackDataset(Dataset):
    """Elements of several datasets side by side: as tuples, or as dicts of those that are named."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset takes datasets, or datasets by names" if args or kwargs else
                             "At least one dataset should be passed")
        self.datasets = kwargs if kwargs else args
        self._length = len(list(self._each())[0])
        if any(len(d) != self._length for d in self._each()):
            raise ValueError("Size mismatch between datasets")

    def _each(self):
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self):
        return self._length


def random_split(dataset, lengths, generator=None):
    """Parts of a dataset without an element in two of them; lengths are numbers of elements, or parts of 1."""
    total, whole = len(dataset), sum(lengths)
    counts = list(lengths)
    if whole <= 1 and math.isclose(whole, 1):
        counts = [math.floor(total * part) for part in lengths]
        # What rounding down left over goes to the first parts, one to each.
        left = total - sum(counts)
        counts = [c + left // len(counts) + (1 if i < left % len(counts) else 0) for i, c in enumerate(counts)]
    if sum(counts) != total:
        raise ValueError(f"random_split() of {total} elements into parts of {sum(counts)} in all")
    order = iter(torch.randperm(total, generator=generator).tolist())
    return [Subset(dataset, [next(order) for _ in range(count)]) for count in counts]


class Sampler:
    """What gives the indices of a dataset in some order."""

    def __init__(self, data_source=None):
        pass


class SequentialSampler(Sampler):
    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples
        if self.num_samples <= 0:
            raise ValueError(f"RandomSampler of {self.num_samples} samples: it is a number above 0")

    def __iter__(self):
        n = len(self.data_source)
        if n == 0:
            raise ValueError(f"RandomSampler of {self.num_samples} samples of no elements")
        if self.replacement:
            order = torch.randint(n, (self.num_samples,), generator=self.generator).tolist()
        else:
            order = []
            while len(order) < self.num_samples:
                order += torch.randperm(n, generator=self.generator).tolist()
        return iter(order[:self.num_samples])

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        for i in torch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class DistributedSampler(Sampler):
    """The share of a dataset that one of several processes takes: every num_replicas-th index, from `rank` on."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None or rank is None:
            raise RuntimeError("Requires distributed package to be available: a script has one process, so "
                               "DistributedSampler takes num_replicas= and rank=")
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else -(-n // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            places = torch.randperm(n, generator=torch.Generator().manual_seed(self.seed + self.epoch)).tolist()
        else:
            places = list(range(n))
        while len(places) < self.total_size:
            places += places[:self.total_size - len(places)]
        return iter(places[:self.total_size][self.rank::self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Another order of the same elements."""
        self.epoch = epoch


class WeightedRandomSampler(Sampler):
    """Places drawn as often as their weights say."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        self.weights, self.num_samples = torch.as_tensor(weights, dtype=torch.float64), num_samples
        self.replacement, self.generator = replacement, generator
        if num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")

    def __iter__(self):
        drawn = torch.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    def __init__(self, sampler, batch_size, drop_last):
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        batch = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def default_collate(batch):
    """One value of those of each element: tensors are stacked, numbers become a tensor, containers are kept."""
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(batch)
    if isinstance(first, float):
        return torch.tensor(batch, dtype=torch.float64)
    if isinstance(first, int):
        return torch.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, dict):
        return {key: default_collate([d[key] for d in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(e) != len(first) for e in batch):
            raise RuntimeError(f"default_collate: elements of a batch have {sorted({len(e) for e in batch})} parts")
        parts = [default_collate(list(part)) for part in zip(*batch)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise TypeError("default_collate: a batch is of tensors, numbers, texts, dicts or lists, "
                    f"not of '{type(first).__name__}': give collate_fn=")


def default_convert(data):
    """Numbers of a value as they are: there are no arrays but tensors."""
    if isinstance(data, dict):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[default_convert(d) for d in data])
    if isinstance(data, (tuple, list)):
        return [default_convert(d) for d in data]
    return data


def get_worker_info():
    """None: batches are made in the script's own process."""
    return None


class DataLoader:
    """Batches of a dataset. What says how workers make them (`num_workers`, `timeout`, `worker_init_fn`,
    `multiprocessing_context`, `prefetch_factor`, `persistent_workers`, `in_order`) and `pin_memory` change no value and
    have no effect."""

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False,
                 pin_memory_device="", in_order=True):
        if shuffle and sampler is not None:
            raise ValueError("DataLoader takes a sampler or shuffle=True")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader takes a batch_sampler, or batch_size, shuffle, sampler and drop_last")
        if batch_size is not None and batch_size <= 0:
            raise ValueError(f"DataLoader(batch_size={batch_size}): it is a number above 0")
        self.dataset, self.batch_size, self.drop_last, self.num_workers = dataset, batch_size, drop_last, num_workers
        self.collate_fn, self.generator = collate_fn, generator
        self.sampler = self.batch_sampler = None
        if isinstance(dataset, IterableDataset):
            if shuffle or sampler is not None or batch_sampler is not None:
                raise ValueError("an IterableDataset has its own order: no shuffle, sampler or batch_sampler")
            return
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if batch_sampler is None and batch_size is not None:
            self.batch_sampler = BatchSampler(sampler, batch_size, drop_last)

    def __iter__(self):
        dataset, collate = self.dataset, self.collate_fn
        if self.batch_size is None and self.batch_sampler is None:  # single elements, as they are
            for one in dataset if self.sampler is None else (dataset[i] for i in self.sampler):
                yield one if collate is None else collate(one)
            return
        collate = default_collate if collate is None else collate
        if self.batch_sampler is None:
            for batch in BatchSampler(dataset, self.batch_size, self.drop_last):
                yield collate(batch)
            return
        for places in self.batch_sampler:
            yield collate([dataset[i] for i in places])

    def __len__(self):
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        if self.sampler is not None:
            return len(self.sampler)
        # An IterableDataset, which is what its batches are taken from.
        if self.batch_size is None:
            return len(self.dataset)
        return len(BatchSampler(self.dataset, self.batch_size, self.drop_last))
