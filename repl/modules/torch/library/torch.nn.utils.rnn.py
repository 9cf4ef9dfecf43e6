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
