"""Transformers of torch.nn: layers of attention and of two linear layers, and stacks of them."""
import copy

import torch
import torch.nn.functional as F
from torch._nn import Dropout, LayerNorm, Linear, Module, ModuleList
from torch._nn_recurrent import MultiheadAttention
from torch.nn import init


def _activation(activation):
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _is_causal(mask, is_causal):
    """A causal mask is given as one: without a mask there is nothing that is_causal could speak of."""
    return bool(is_causal) and mask is not None


class _Layer(Module):
    """What layers of encoders and decoders have in common. `attentions`: names of their attention."""

    def __init__(self, attentions, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                 norm_first, bias, device, dtype):
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        for name in attentions:
            self.add_module(name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **kind))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **kind)
        self.norm_first = norm_first
        parts = range(1, len(attentions) + 2)
        for i in parts:
            self.add_module(f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **kind))
        for i in parts:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _attend(self, attention, drop, x, memory, mask, padding, is_causal):
        return drop(attention(x, memory, memory, padding, False, mask, is_causal=_is_causal(mask, is_causal))[0])

    def _feed(self, drop, x):
        return drop(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def _added(self, x, norm, part):
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))


class TransformerEncoderLayer(_Layer):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__(("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                         batch_first, norm_first, bias, device, dtype)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = self._added(src, self.norm1, lambda x: self._attend(self.self_attn, self.dropout1, x, x, src_mask,
                                                                src_key_padding_mask, is_causal))
        return self._added(x, self.norm2, lambda x: self._feed(self.dropout2, x))


class TransformerDecoderLayer(_Layer):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__(("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation,
                         layer_norm_eps, batch_first, norm_first, bias, device, dtype)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
        x = self._added(tgt, self.norm1, lambda x: self._attend(self.self_attn, self.dropout1, x, x, tgt_mask,
                                                                tgt_key_padding_mask, tgt_is_causal))
        x = self._added(x, self.norm2, lambda x: self._attend(self.multihead_attn, self.dropout2, x, memory,
                                                              memory_mask, memory_key_padding_mask, memory_is_causal))
        return self._added(x, self.norm3, lambda x: self._feed(self.dropout3, x))


class _Stack(Module):
    def __init__(self, layer, num_layers, norm):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def _through(self, x, call):
        for layer in self.layers:
            x = call(layer, x)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        return self._through(src, lambda layer, x: layer(x, mask, src_key_padding_mask, bool(is_causal)))


class TransformerDecoder(_Stack):
    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False):
        return self._through(tgt, lambda layer, x: layer(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                                                         memory_key_padding_mask, bool(tgt_is_causal),
                                                         memory_is_causal))


class Transformer(Module):
    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048,
                 dropout=0.1, activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        given = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                 device, dtype)

        def norm():
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*given), num_encoder_layers, norm())
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*given), num_decoder_layers, norm())
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None,
                memory_is_causal=False):
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                            tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        return torch.full((sz, sz), float("-inf"), device=device, dtype=dtype).triu(1)
