"""Spectra of signals over time."""
import torch
from torch import _complex


def _framing(n_fft, hop_length, win_length, window, like, what):
    hop = n_fft // 4 if hop_length is None else hop_length
    wide = n_fft if win_length is None else win_length
    if n_fft <= 0 or hop <= 0 or not 0 < wide <= n_fft:
        raise RuntimeError(f"{what}(): n_fft={n_fft}, hop_length={hop}, win_length={wide}")
    if window is None:
        window = torch.ones(wide, dtype=like.dtype, device=like.device)
    if window.ndim != 1 or window.shape[0] != wide:
        raise RuntimeError(f"{what}(): the window has shape {tuple(window.shape)}, not ({wide},)")
    if isinstance(window, _complex.Tensor):
        raise NotImplementedError(f"{what}() with a complex window is not supported")
    left = (n_fft - wide) // 2
    return hop, torch.nn.functional.pad(window, (left, n_fft - wide - left)) if wide < n_fft else window


def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
         onesided=None, return_complex=None, align_to_window=None):
    is_complex = isinstance(input, _complex.Tensor)
    if return_complex is None and not is_complex and not isinstance(window, _complex.Tensor):
        raise RuntimeError("stft() takes return_complex, True or False, for real signals")
    if align_to_window is not None:
        raise NotImplementedError("stft(align_to_window=…) is not supported")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"stft() takes a signal or a batch of them, got {input.ndim} dimensions")
    if not is_complex and not input.is_floating_point():
        raise RuntimeError(f"stft() takes floats, got {input.dtype}")
    one = (not is_complex) if onesided is None else onesided
    if one and is_complex:
        raise RuntimeError("stft(onesided=True) of a complex signal: it has two sides")
    x = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        x = torch.nn.functional.pad(x, (n_fft // 2, n_fft // 2), mode=pad_mode)
    hop, window = _framing(n_fft, hop_length, win_length, window, input.real if is_complex else input, "stft")
    if x.shape[-1] < n_fft:
        raise RuntimeError(f"stft(n_fft={n_fft}) of a signal of {x.shape[-1]}")
    frames = x.unfold(-1, n_fft, hop) * window
    norm = "ortho" if normalized else None
    out = (torch.fft.rfft(frames, norm=norm) if one else torch.fft.fft(frames, norm=norm)).transpose(1, 2)
    out = out if input.ndim == 2 else out[0]
    return torch.view_as_real(out) if return_complex is False else out


def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None,
          length=None, return_complex=False):
    if not isinstance(input, _complex.Tensor):
        raise RuntimeError("istft() takes a complex tensor")
    if return_complex:
        raise NotImplementedError("istft(return_complex=True) is not supported")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"istft() takes a spectrum or a batch of them, got {input.ndim} dimensions")
    one = input.shape[-2] != n_fft if onesided is None else onesided
    if input.shape[-2] != (n_fft // 2 + 1 if one else n_fft):
        raise RuntimeError(f"istft(n_fft={n_fft}) of a spectrum of {input.shape[-2]} frequencies")
    hop, window = _framing(n_fft, hop_length, win_length, window, input.real, "istft")
    x = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    norm = "ortho" if normalized else None
    x = torch.fft.irfft(x[..., :n_fft // 2 + 1], n_fft, norm=norm)  # as torch: the other half is not read
    count = x.shape[1]
    whole = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    end = whole - start if length is None else start + length

    def added(frames):
        shape = {"output_size": (1, whole), "kernel_size": (1, n_fft), "stride": (1, hop)}
        return torch.nn.functional.fold(frames.transpose(1, 2), **shape).reshape(frames.shape[0], whole)

    weight = added((window * window).expand(1, count, n_fft))[:, start:min(end, whole)]
    if not weight.is_cuda and float(weight.abs().min()) < 1e-11:
        raise RuntimeError("istft(): the windows leave parts of the signal out")
    out = added(x * window)[:, start:min(end, whole)] / weight
    if end > whole:
        out = torch.nn.functional.pad(out, (0, end - whole))
    return out if input.ndim == 3 else out[0]
