"""torch.nn.utils.rnn: sequences of different lengths side by side."""
import torch


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """[longest, batch, …], or [batch, longest, …]: each sequence, filled up with `padding_value`."""
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence() takes one sequence or more")
    if padding_side not in ("right", "left"):
        raise RuntimeError(f"pad_sequence(padding_side={padding_side!r}): it is 'right' or 'left'")
    first, rest = sequences[0], list(sequences[0].shape[1:])
    if any(s.ndim != first.ndim or list(s.shape[1:]) != rest for s in sequences):
        raise RuntimeError(f"pad_sequence() of {[tuple(s.shape) for s in sequences]}: only the first sizes may differ")
    longest = max(s.shape[0] for s in sequences)
    rows = []
    for s in sequences:
        fill = s.new_full([longest - s.shape[0]] + rest, padding_value)
        rows.append(torch.cat([s, fill] if padding_side == "right" else [fill, s]))
    return torch.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences that pad_sequence() was given."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:int(n)] for row, n in zip(rows, lengths)]


class PackedSequence:
    """Sequences of different lengths without what fills them up: the first steps of all, longest first, then the
    second ones. `batch_sizes` has how many there are of each step."""

    def __init__(self, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        self.data, self.batch_sizes = data, batch_sizes
        self.sorted_indices, self.unsorted_indices = sorted_indices, unsorted_indices
        if unsorted_indices is None and sorted_indices is not None:
            self.unsorted_indices = torch.argsort(sorted_indices)

    def __iter__(self):
        return iter((self.data, self.batch_sizes, self.sorted_indices, self.unsorted_indices))

    def _with(self, data):
        return PackedSequence(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def to(self, *args, **kwargs):
        return self._with(self.data.to(*args, **kwargs))

    def cpu(self):
        return self.to("cpu")

    def cuda(self):
        return self.to("cuda")

    is_cuda = property(lambda self: self.data.is_cuda)

    def _lengths(self):
        """How long each sequence is, longest first."""
        sizes = self.batch_sizes.tolist()
        return [sum(n > b for n in sizes) for b in range(sizes[0])]


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    lengths = [int(n) for n in (lengths.tolist() if isinstance(lengths, torch.Tensor) else lengths)]
    x = input.transpose(0, 1) if batch_first else input
    if len(lengths) != x.shape[1]:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size="
                           f"{x.shape[1]})")
    if not lengths or min(lengths) <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0")
    if max(lengths) > x.shape[0]:
        raise RuntimeError(f"pack_padded_sequence(): a length of {max(lengths)} in sequences of {x.shape[0]} steps")
    order = None
    if not enforce_sorted:
        order = sorted(range(len(lengths)), key=lambda b: -lengths[b])
        lengths = [lengths[b] for b in order]
        order = torch.tensor(order, device=input.device)
        x = x.index_select(1, order)
    elif lengths != sorted(lengths, reverse=True):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
                           "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
                           "requirement if you do not need ONNX exportability.")
    sizes = [sum(n > t for n in lengths) for t in range(lengths[0])]
    places = torch.tensor([t * len(lengths) + b for t, n in enumerate(sizes) for b in range(n)], device=input.device)
    rows = x.reshape([x.shape[0] * x.shape[1]] + list(x.shape[2:]))
    return PackedSequence(rows.index_select(0, places), torch.tensor(sizes), order)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(the sequences filled up, their lengths), in the order in which they were packed."""
    sizes, lengths = sequence.batch_sizes.tolist(), sequence._lengths()
    steps, data = len(sizes), sequence.data
    if total_length is not None:
        if total_length < steps:
            raise ValueError(f"Expected total_length to be at least the length of the longest sequence in input, but "
                             f"got total_length={total_length} and max sequence length being {steps}")
        sizes, steps = sizes + [0] * (total_length - steps), total_length
    begins = [sum(sizes[:t]) for t in range(steps)]
    places = torch.tensor([begins[t] + b if b < sizes[t] else -1 for t in range(steps) for b in range(len(lengths))],
                          device=data.device)
    one = [1] * (data.ndim - 1)
    held = (places >= 0).reshape([-1] + one)
    x = torch.where(held, data.index_select(0, places.clamp(min=0)), padding_value).to(data.dtype)
    x = x.reshape([steps, len(lengths)] + list(data.shape[1:]))
    if sequence.unsorted_indices is not None:
        x = x.index_select(1, sequence.unsorted_indices)
        lengths = [lengths[b] for b in sequence.unsorted_indices.tolist()]
    return x.transpose(0, 1) if batch_first else x, torch.tensor(lengths)


def pack_sequence(sequences, enforce_sorted=True):
    return pack_padded_sequence(pad_sequence(sequences), [len(s) for s in sequences], False, enforce_sorted)


def unpack_sequence(packed_sequences):
    return unpad_sequence(*pad_packed_sequence(packed_sequences, True), True)
