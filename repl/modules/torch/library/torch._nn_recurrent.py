"""Modules of torch.nn that go along a sequence: recurrent ones, step by step, and attention of several heads."""
import math

import torch
import torch.nn.functional as F
from torch import _kiln
from torch._nn import Linear, Module, _Uniform


# A step takes W x + b (one product for all steps), the states, and the weights and biases of the first state.


def _tanh(given, h, u, c):
    return torch.tanh(given + F.linear(h[0], u, c)),


def _relu(given, h, u, c):
    return torch.relu(given + F.linear(h[0], u, c)),


def _gru(given, h, u, c):
    x, kept = given.chunk(3, -1), F.linear(h[0], u, c).chunk(3, -1)
    reset, update = torch.sigmoid(x[0] + kept[0]), torch.sigmoid(x[1] + kept[1])
    new = torch.tanh(x[2] + reset * kept[2])
    return (1 - update) * new + update * h[0],


def _lstm(given, h, u, c):
    i, f, g, o = (given + F.linear(h[0], u, c)).chunk(4, -1)
    cell = torch.sigmoid(f) * h[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


class _Recurrent(_Uniform):
    """The parameters of one step are weight_ih, weight_hh, bias_ih and bias_hh, with the layer in their names."""

    gates, states, step, nonlinearity, proj_size = 1, 1, _tanh, "tanh", 0

    def _set_nonlinearity(self, nonlinearity):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"{type(self).__name__}(nonlinearity={nonlinearity!r}): it is 'tanh' or 'relu'")
        self.nonlinearity = nonlinearity

    def _inputs(self):
        return self.hidden_size  # as torch draws all of them

    def _add(self, suffix, inputs, hidden, bias, device, dtype, projected=0):
        rows = self.gates * hidden
        self._empty_parameter("weight_ih" + suffix, (rows, inputs), device, dtype)
        self._empty_parameter("weight_hh" + suffix, (rows, projected or hidden), device, dtype)
        self._empty_parameter("bias_ih" + suffix, (rows,), device, dtype, bias)
        self._empty_parameter("bias_hh" + suffix, (rows,), device, dtype, bias)
        if projected:
            self._empty_parameter("weight_hr" + suffix, (projected, hidden), device, dtype)

    def _given(self, x, suffix):
        """What the input adds to a step, or to all of them at once."""
        return F.linear(x, getattr(self, "weight_ih" + suffix), getattr(self, "bias_ih" + suffix))

    def _stepped(self, given, h, suffix):
        step = _relu if self.nonlinearity == "relu" else type(self).step
        new = step(given, h, getattr(self, "weight_hh" + suffix), getattr(self, "bias_hh" + suffix))
        return (F.linear(new[0], getattr(self, "weight_hr" + suffix)),) + new[1:] if self.proj_size else new

    def _starting(self, hx, shape, like):
        """The states as a tuple, zeros unless given. The first has as many elements as it is projected to."""
        name = type(self).__name__
        shapes = [list(shape[:-1]) + [self.proj_size or shape[-1]]] + [list(shape)] * (self.states - 1)
        if hx is None:
            return tuple(torch.zeros(s, dtype=like.dtype, device=like.device) for s in shapes)
        states = tuple(hx) if self.states == 2 else (hx,)
        for h, shape in zip(states, shapes):
            if list(h.shape) != shape:
                raise RuntimeError(f"{name}: a hidden state of {tuple(h.shape)}, expected {tuple(shape)}")
        return states


class RNNBase(_Recurrent):
    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__()
        if proj_size and self.states != 2:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if not 0 <= proj_size < hidden_size and proj_size:
            raise ValueError(f"proj_size={proj_size}: it is from 0 to below the hidden size, {hidden_size}")
        self.proj_size = proj_size
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        if num_layers <= 0 or hidden_size <= 0:
            raise ValueError(f"{type(self).__name__} of {num_layers} layers and a hidden size of {hidden_size}: both "
                             "are above 0")
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                inputs = input_size if layer == 0 else (proj_size or hidden_size) * (2 if bidirectional else 1)
                self._add(suffix, inputs, hidden_size, bias, device, dtype, proj_size)
        self.reset_parameters()

    def _suffixes(self, layer):
        return [f"_l{layer}"] + ([f"_l{layer}_reverse"] if self.bidirectional else [])

    def forward(self, input, hx=None):
        if not isinstance(input, torch.Tensor):
            return self._of_packed(input, hx)
        return self._layers(input, hx, self.batch_first, None)

    def _of_packed(self, input, hx):
        """Sequences of different lengths: filled up, and each state stays as it is where its sequence has ended."""
        from torch.nn.utils import rnn
        x, lengths = rnn.pad_packed_sequence(input)
        goes_on = torch.arange(x.shape[0], device=x.device).unsqueeze(1) < lengths.to(x.device)
        out, states = self._layers(x, hx, False, goes_on.unsqueeze(-1))
        order = input.sorted_indices
        lengths = lengths if order is None else lengths[order.cpu()]
        packed = rnn.pack_padded_sequence(out if order is None else out.index_select(1, order), lengths)
        return input._with(packed.data), states

    def _layers(self, input, hx, batch_first, goes_on):
        name = type(self).__name__
        if input.ndim not in (2, 3):
            raise ValueError(f"{name} takes an input of 2 or 3 dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"{name} takes {self.input_size} elements at each step, got {input.shape[-1]}")
        alone = input.ndim == 2
        x = input.unsqueeze(1) if alone else input.transpose(0, 1) if batch_first else input
        ways = 2 if self.bidirectional else 1
        shape = [self.num_layers * ways, x.shape[1], self.hidden_size]
        if alone and hx is not None:
            hx = tuple(h.unsqueeze(1) for h in hx) if self.states == 2 else hx.unsqueeze(1)
        start, last = self._starting(hx, shape, input), []
        for layer in range(self.num_layers):
            outs = []
            for way, suffix in enumerate(self._suffixes(layer)):
                h, steps = tuple(s[layer * ways + way] for s in start), list(self._given(x, suffix).unbind(0))
                made, places = [], range(len(steps))
                for t in reversed(places) if way else places:
                    new = self._stepped(steps[t], h, suffix)
                    h = new if goes_on is None else tuple(torch.where(goes_on[t], a, b) for a, b in zip(new, h))
                    made.append(h[0])
                last.append(h)
                outs.append(torch.stack(made[::-1] if way else made))
            x = torch.cat(outs, -1) if ways == 2 else outs[0]
            if self.dropout and layer + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, self.training)
        states = tuple(torch.stack([h[i] for h in last]) for i in range(self.states))
        if alone:
            x, states = x.squeeze(1), tuple(s.squeeze(1) for s in states)
        elif batch_first:
            x = x.transpose(0, 1)
        _kiln.siblings(x, *states)
        return x, states if self.states == 2 else states[0]

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        text += f", proj_size={self.proj_size}" if self.proj_size else ""
        for name, plain in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0),
                            ("bidirectional", False)):
            value = getattr(self, name)
            text += f", {name}={value}" if value != plain else ""
        return text


class RNN(RNNBase):
    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", *args, **kwargs):
        super().__init__(input_size, hidden_size, num_layers, *args, **kwargs)
        self._set_nonlinearity(nonlinearity)


class GRU(RNNBase):
    gates, step = 3, _gru


class LSTM(RNNBase):
    gates, states, step = 4, 2, _lstm


class RNNCellBase(_Recurrent):
    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self._add("", input_size, hidden_size, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input, hx=None):
        if input.ndim not in (1, 2):
            raise ValueError(f"{type(self).__name__} takes an input of 1 or 2 dimensions, got {input.ndim}")
        start = self._starting(hx, list(input.shape[:-1]) + [self.hidden_size], input)
        h = self._stepped(self._given(input, ""), start, "")
        return h if self.states == 2 else h[0]

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
        return text + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class RNNCell(RNNCellBase):
    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self._set_nonlinearity(nonlinearity)


class GRUCell(RNNCellBase):
    gates, step = 3, _gru


class LSTMCell(RNNCellBase):
    gates, states, step = 4, 2, _lstm


def _added(mask, dtype):
    """A mask of bools, true where nothing is looked at, as what is added to the scores."""
    if mask.dtype is not torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -math.inf)


class MultiheadAttention(Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
                 vdim=None, batch_first=False, device=None, dtype=None):
        super().__init__()
        if embed_dim % num_heads:
            raise AssertionError(f"MultiheadAttention: {embed_dim} elements do not split into {num_heads} heads")
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        # One matrix of three parts where queries, keys and values have one width, else three.
        same = self.kdim == embed_dim and self.vdim == embed_dim
        widths = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        for name, wide in widths.items():
            self._empty_parameter(name, (embed_dim, wide), device, dtype, not same)
        self._empty_parameter("in_proj_weight", (3 * embed_dim, embed_dim), device, dtype, same)
        self._empty_parameter("in_proj_bias", (3 * embed_dim,), device, dtype, bias)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            self._empty_parameter(name, (1, 1, embed_dim), device, dtype, add_bias_kv)
        with torch.no_grad():
            for name in ("in_proj_weight", ) if same else widths:
                weight = getattr(self, name)
                bound = math.sqrt(6 / sum(weight.shape))
                weight.uniform_(-bound, bound)
            for row in (self.bias_k, self.bias_v) if add_bias_kv else ():
                row.normal_(0, math.sqrt(1 / embed_dim))
            if bias:
                self.in_proj_bias.zero_()
                self.out_proj.bias.zero_()

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):
        if is_causal and attn_mask is None:
            raise RuntimeError("MultiheadAttention: is_causal=True says that attn_mask is causal, and needs one")
        if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
            raise AssertionError(f"query, key and value are all of 2 or of 3 dimensions, got {query.ndim}, {key.ndim} "
                                 f"and {value.ndim}")
        alone = query.ndim == 2
        if alone:
            query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        if query.shape[-1] != self.embed_dim:
            raise AssertionError(f"MultiheadAttention takes {self.embed_dim} elements a row, got {query.shape[-1]}")
        if key.shape[-1] != self.kdim or value.shape[-1] != self.vdim:
            raise AssertionError(f"MultiheadAttention takes keys of {self.kdim} and values of {self.vdim} elements, "
                                 f"got {key.shape[-1]} and {value.shape[-1]}")
        weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        weights = weights if self.in_proj_weight is None else self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        n, rows = query.shape[0], query.shape[1]

        def heads(x, w, b, *more):
            x = torch.cat([F.linear(x, w, b), *more], 1) if more else F.linear(x, w, b)
            return x.reshape(n, x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

        # Rows behind the keys and values, which no mask hides: learned ones, and zeros.
        more = [[], []]
        if self.bias_k is not None:
            more = [[row.expand(n, 1, self.embed_dim)] for row in (self.bias_k, self.bias_v)]
        if self.add_zero_attn:
            more = [rows + [query.new_zeros(n, 1, self.embed_dim)] for rows in more]
        q, k, v = (heads(x, w, b, *m) for x, w, b, m in zip((query, key, value), weights, biases, [[]] + more))
        columns, beside = key.shape[1], len(more[0])
        mask = None
        if attn_mask is not None:
            mask = attn_mask if attn_mask.ndim == 2 else attn_mask.reshape(n, self.num_heads, rows, columns)
            mask = F.pad(_added(mask, q.dtype), (0, beside))
        if key_padding_mask is not None:
            padding = F.pad(_added(key_padding_mask, q.dtype), (0, beside)).reshape(n, 1, 1, columns + beside)
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
