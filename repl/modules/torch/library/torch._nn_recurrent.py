"""Modules of torch.nn that go along a sequence: recurrent ones, step by step, and attention of several heads."""
import math

import torch
import torch.nn.functional as F
from torch._nn import Linear, Module, Parameter


def _tanh(x, h, w, u, b, c):
    return torch.tanh(F.linear(x, w, b) + F.linear(h[0], u, c)),


def _relu(x, h, w, u, b, c):
    return torch.relu(F.linear(x, w, b) + F.linear(h[0], u, c)),


def _gru(x, h, w, u, b, c):
    given, kept = F.linear(x, w, b).chunk(3, -1), F.linear(h[0], u, c).chunk(3, -1)
    reset, update = torch.sigmoid(given[0] + kept[0]), torch.sigmoid(given[1] + kept[1])
    new = torch.tanh(given[2] + reset * kept[2])
    return (1 - update) * new + update * h[0],


def _lstm(x, h, w, u, b, c):
    i, f, g, o = (F.linear(x, w, b) + F.linear(h[0], u, c)).chunk(4, -1)
    cell = torch.sigmoid(f) * h[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


class _Recurrent(Module):
    """The parameters of one step are weight_ih, weight_hh, bias_ih and bias_hh, with the layer in their names."""

    gates, states, step = 1, 1, _tanh

    def _add(self, suffix, inputs, hidden, bias, device, dtype):
        bound = 1 / math.sqrt(hidden) if hidden > 0 else 0.0
        rows = self.gates * hidden
        for name, shape in (("weight_ih", (rows, inputs)), ("weight_hh", (rows, hidden)), ("bias_ih", (rows,)),
                            ("bias_hh", (rows,))):
            made = None
            if bias or name.startswith("weight"):
                made = Parameter(torch.empty(shape, device=device, dtype=dtype).uniform_(-bound, bound))
            self.register_parameter(name + suffix, made)

    def _stepped(self, x, h, suffix):
        parts = [getattr(self, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        return type(self).step(x, h, *parts)

    def _starting(self, hx, shape, like):
        """The states as a tuple, zeros unless given."""
        if hx is None:
            return (torch.zeros(shape, dtype=like.dtype, device=like.device),) * self.states
        states = tuple(hx) if self.states == 2 else (hx,)
        for h in states:
            if list(h.shape) != list(shape):
                raise RuntimeError(f"{type(self).__name__}: a hidden state of {tuple(h.shape)}, expected {tuple(shape)}")
        return states


class _Layers(_Recurrent):
    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        if num_layers <= 0 or hidden_size <= 0:
            raise ValueError("hidden_size and num_layers must be greater than zero")
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                inputs = input_size if layer == 0 else hidden_size * (2 if bidirectional else 1)
                self._add(suffix, inputs, hidden_size, bias, device, dtype)

    def _suffixes(self, layer):
        return [f"_l{layer}"] + ([f"_l{layer}_reverse"] if self.bidirectional else [])

    def forward(self, input, hx=None):
        if input.ndim not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, "
                               f"got {input.shape[-1]}")
        alone = input.ndim == 2
        x = input.unsqueeze(1) if alone else input.transpose(0, 1) if self.batch_first else input
        ways = 2 if self.bidirectional else 1
        shape = [self.num_layers * ways, x.shape[1], self.hidden_size]
        if alone and hx is not None:
            hx = tuple(h.unsqueeze(1) for h in hx) if self.states == 2 else hx.unsqueeze(1)
        start, last = self._starting(hx, shape, input), []
        for layer in range(self.num_layers):
            outs = []
            for way, suffix in enumerate(self._suffixes(layer)):
                h, steps = tuple(s[layer * ways + way] for s in start), list(x.unbind(0))
                made = []
                for one in reversed(steps) if way else steps:
                    h = self._stepped(one, h, suffix)
                    made.append(h[0])
                last.append(h)
                outs.append(torch.stack(made[::-1] if way else made))
            x = torch.cat(outs, -1) if ways == 2 else outs[0]
            if self.dropout and layer + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, self.training)
        states = tuple(torch.stack([h[i] for h in last]) for i in range(self.states))
        if alone:
            x, states = x.squeeze(1), tuple(s.squeeze(1) for s in states)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, states if self.states == 2 else states[0]

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, plain in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0),
                            ("bidirectional", False)):
            value = getattr(self, name)
            text += f", {name}={value}" if value != plain else ""
        return text


class RNN(_Layers):
    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", *args, **kwargs):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity

    def _stepped(self, x, h, suffix):
        parts = [getattr(self, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        return (_tanh if self.nonlinearity == "tanh" else _relu)(x, h, *parts)


class GRU(_Layers):
    gates, step = 3, _gru


class LSTM(_Layers):
    gates, states, step = 4, 2, _lstm


class _Cell(_Recurrent):
    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self._add("", input_size, hidden_size, bias, device, dtype)

    def forward(self, input, hx=None):
        if input.ndim not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        h = self._stepped(input, self._starting(hx, list(input.shape[:-1]) + [self.hidden_size], input), "")
        return h if self.states == 2 else h[0]

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    pass


class GRUCell(_Cell):
    gates, step = 3, _gru


class LSTMCell(_Cell):
    gates, states, step = 4, 2, _lstm


class MultiheadAttention(Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, batch_first=False, device=None, dtype=None):
        super().__init__()
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first = dropout, batch_first
        bound = math.sqrt(6 / (4 * embed_dim))
        weight = torch.empty((3 * embed_dim, embed_dim), device=device, dtype=dtype)
        self.in_proj_weight = Parameter(weight.uniform_(-bound, bound))
        made = torch.zeros((3 * embed_dim,), device=device, dtype=dtype) if bias else None
        self.register_parameter("in_proj_bias", None if made is None else Parameter(made))
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        if bias:
            self.out_proj.bias.zero_()

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):
        if is_causal and attn_mask is None:
            raise RuntimeError("need attn_mask if specifying the is_causal hint")
        if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
            raise AssertionError(f"query, key and value are all of 2 or of 3 dimensions, got {query.ndim}, {key.ndim} and "
                                 f"{value.ndim}")
        alone = query.ndim == 2
        if alone:
            query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        if query.shape[-1] != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {query.shape[-1]}")
        weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        n, rows = query.shape[0], query.shape[1]

        def heads(x, w, b):
            return F.linear(x, w, b).reshape(n, -1, self.num_heads, self.head_dim).transpose(1, 2)

        q, k, v = (heads(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
        mask = None
        if attn_mask is not None:
            mask = attn_mask if attn_mask.ndim == 2 else attn_mask.reshape(n, self.num_heads, rows, k.shape[2])
            mask = self._added(mask, q.dtype)
        if key_padding_mask is not None:
            padding = self._added(key_padding_mask, q.dtype).reshape(n, 1, 1, -1)
            mask = padding if mask is None else mask + padding
        drop = self.dropout if self.training else 0.0
        scores = None
        if need_weights:
            scores = (q / math.sqrt(self.head_dim)) @ k.transpose(-1, -2)
            scores = F.softmax(scores if mask is None else scores + mask, -1)
            scores = F.dropout(scores, drop) if drop else scores
            out = scores @ v
        else:
            out = F.scaled_dot_product_attention(q, k, v, mask, drop)
        out = self.out_proj(out.transpose(1, 2).reshape(n, rows, self.embed_dim))
        if need_weights and average_attn_weights:
            scores = scores.mean(1)
        if alone:
            return out.squeeze(0), scores if scores is None else scores.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), scores

    def _added(self, mask, dtype):
        """A mask of bools, true where nothing is looked at, as what is added to the scores."""
        if mask.dtype is not torch.bool:
            return mask.to(dtype)
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -math.inf)
