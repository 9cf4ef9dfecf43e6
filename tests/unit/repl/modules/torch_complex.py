"""Writes torch_complex.txt beside it: expressions of complex tensors and transforms, and what PyTorch on a CPU makes of
them.

    python3 tests/unit/repl/modules/torch_complex.py

torch_complex_test.cc evaluates the same texts here, small tensors on the host and all of them by kernels. The file
begins with the functions that they call; then each line is an expression, a tab, and "error", a value, or the dtype,
shape and elements of a tensor.
"""
import os
import torch

ROWS = """
R(3) + 2j
2j - R(3)
R(2, 3) * (1 - 2j)
R(3) / (3 + 4j)
R(3) == 1j
Z(2, 3) + Z(2, 3)
Z(2, 3) - Z(3) * 2
Z(2, 3) * Z(2, 3, k=5)
Z(2, 3) * R(3)
R(2, 1) * Z(3)
Z(2, 3) / Z(2, 3, k=5)
Z(3) / R(3)
1 / Z(4)
Z(3) / (2 - 1j)
R(3) / Z(3)
R(3) - Z(3)
Z(3) * 2.5
-Z(3)
Z(3).neg()
Z(3, d=1) * Z(3)
Z(3) * torch.ones(3, dtype=torch.float64)
Z(3) * torch.arange(3)
Z(3) + torch.tensor(2.0, dtype=torch.float64)
torch.arange(3) * 1j
torch.add(Z(3), Z(3), alpha=2)
torch.sub(R(3), Z(3), alpha=2)
torch.addcmul(Z(3), Z(3), R(3), value=0.5)
Z(5).abs()
torch.abs(Z(3, d=1))
Z(4).angle()
R(4).angle()
torch.tensor([3, -2]).angle()
Z(3).conj()
R(3).conj()
R(3).is_complex()
R(3).resolve_conj()
Z(3).conj().resolve_conj()
torch.real(Z(3))
torch.imag(Z(3))
R(3).real
R(3).imag
torch.imag(R(3))
Z(2, 3).T
Z(2, 3).H
Z(2, 2, 3).mH
Z(3) == Z(3)
Z(3) != Z(3, k=2)
Z(3) == R(3)
Z(3) < Z(3)
Z(3) ** 2
Z(3) ** 3
Z(3) ** -1
Z(3) ** 0.5
Z(3) ** Z(3, k=3)
Z(3) ** 1.7
2 ** Z(3)
R(3).abs() ** Z(3)
Z(4).exp()
Z(4).log()
Z(6).sqrt()
Z(3).square()
Z(3).reciprocal()
Z(3).sin()
torch.cos(Z(3))
Z(3).sgn()
Z(2, 3).sum()
Z(2, 3).sum(0)
Z(2, 3).mean(-1, keepdim=True)
Z(2, 3).sum(1, dtype=torch.complex128)
Z(2, 3).cumsum(1)
Z(2, 3).norm()
Z(2, 3) @ Z(3, 4)
Z(2, 2, 3) @ Z(2, 3, 4)
Z(2, 3).mm(Z(3, 2))
Z(3) @ Z(3)
Z(2, 3) @ R(3, 2)
torch.vdot(Z(3), Z(3, k=5))
torch.dot(Z(3), Z(3, k=5))
torch.outer(Z(2), Z(3))
torch.einsum("ij,jk->ik", Z(2, 3), Z(3, 2))
Z(2, 3).reshape(3, 2)
Z(2, 3).reshape(-1)
Z(2, 3).view(6)
Z(2, 3).permute(1, 0)
Z(2, 3).transpose(0, 1).contiguous()
Z(2, 3).flatten()
Z(2, 3)[1]
Z(2, 3)[:, 1:]
Z(2, 3)[..., 0]
Z(3)[torch.tensor([2, 0])]
Z(3)[R(3) > 0]
Z(2, 3)[None].shape
Z(2, 3).unsqueeze(1)
Z(1, 3).expand(2, 3)
Z(2, 3).split(2, 1)[1]
Z(2, 3).chunk(2, 0)[1]
Z(2, 3).unbind(1)[2]
torch.cat([Z(2, 3), Z(1, 3)])
torch.cat([Z(2), R(2)])
torch.stack([Z(2), Z(2, k=5)], 1)
torch.roll(Z(4), 1)
torch.flip(Z(4), (0,))
torch.tril(Z(3, 3))
torch.where(R(3) > 0, Z(3), R(3))
torch.where(R(3) > 0, R(3), 1j)
Z(3).masked_fill(R(3) > 0, 2)
torch.nn.functional.pad(Z(3), (1, 2))
torch.view_as_real(Z(2, 3))
torch.view_as_real(R(2))
torch.view_as_complex(R(3, 2))
torch.view_as_complex(R(3, 3))
torch.view_as_complex(torch.arange(4).reshape(2, 2))
torch.view_as_complex(R(2, 4, 2).transpose(0, 1))
torch.complex(R(3), R(3))
torch.complex(R(3), R(3).double())
torch.complex(torch.arange(3), torch.arange(3))
torch.complex(R(3, 1), R(2))
torch.polar(R(3).abs(), R(3))
torch.polar(R(3).abs().double(), R(3).double())
torch.polar(R(3), torch.arange(3))
torch.is_complex(Z(3))
torch.is_complex(R(3))
Z(3).is_complex()
Z(3).is_floating_point()
R(3).to(torch.complex64)
R(3).to(torch.complex128)
R(3).double().to(torch.complex64)
Z(3).to(torch.complex128)
Z(3).type(torch.cdouble)
torch.zeros(2, 3, dtype=torch.complex64)
torch.ones((2,), dtype=torch.complex128)
torch.full((2,), 1 + 2j)
torch.zeros_like(Z(2, 3))
torch.ones_like(R(2), dtype=torch.complex64)
torch.randn(2, 3, dtype=torch.complex64).shape
torch.empty(2, dtype=torch.complex128).dtype
Z(2).new_zeros(3)
torch.tensor([1 + 2j, 3])
torch.tensor([[1j], [2.0]], dtype=torch.complex128)
torch.tensor(3 - 1j)
Z(3).numel()
Z(2, 3).dim()
Z(2, 3).size(1)
Z(3).element_size()
Z(2, 3).tolist()
Z(1).item()
Z(3).dtype.is_complex
torch.complex64.is_floating_point
torch.promote_types(torch.complex64, torch.float64)
torch.isfinite(Z(3))
torch.isclose(Z(3), Z(3) + 1e-9)
torch.allclose(Z(3), Z(3))
torch.equal(Z(3), Z(3))
in_place(Z(3), "x *= 2j")
in_place(Z(3), "x += R(3)")
in_place(Z(3), "x[0] = 5")
in_place(Z(3), "x[1:] = Z(2, k=4)")
in_place(Z(3), "x.real = R(3)")
in_place(R(3), "x *= 2j")
in_place(torch.view_as_complex(R(3, 2)), "x.mul_(2)")
torch.view_as_real(torch.view_as_complex(R(2, 5, 3, 8).reshape(2, 5, 3, -1, 2)) * torch.polar(torch.ones(5, 4), R(5, 4)).view(1, 5, 1, 4)).flatten(3)
torch.fft.fft(Z(1))
torch.fft.fft(Z(2, 2))
torch.fft.fft(Z(3, 8))
torch.fft.fft(R(2, 16), norm="ortho")
torch.fft.fft(Z(2, 12), n=16, norm="forward")
torch.fft.fft(Z(16, 2), dim=0)
torch.fft.fft(Z(2, 7, d=1))
torch.fft.fft(torch.arange(8))
torch.fft.ifft(Z(2, 8))
torch.fft.ifft(Z(3, 5), norm="forward")
torch.fft.ifft(R(9), n=8)
torch.fft.rfft(R(2, 16))
torch.fft.rfft(R(2, 13))
torch.fft.rfft(R(2, 11))
torch.fft.rfft(R(2, 10))
torch.fft.rfft(R(2, 3), n=21)
torch.fft.rfft(R(33827, 31))[::3382, ::5]
torch.fft.rfft(R(3, 343, 1021), norm="ortho")[:, ::100, ::100]
torch.fft.rfft(R(43, 2), dim=0)
torch.fft.irfft(Z(2, 6), n=11)
torch.fft.fft(Z(2, 5), n=11)
torch.fft.fft(R(2, 14), n=11)
torch.fft.rfft(R(2, 64).double(), norm="ortho")
torch.fft.rfft(Z(8))
torch.fft.irfft(Z(2, 9))
torch.fft.irfft(Z(2, 7), n=13)
torch.fft.irfft(Z(3), n=16)
torch.fft.irfft(R(5))
torch.fft.hfft(Z(5))
torch.fft.ihfft(R(8))
torch.fft.fft2(Z(2, 4, 8))
torch.fft.ifft2(Z(4, 8), norm="ortho")
torch.fft.rfft2(R(3, 4, 8))
torch.fft.irfft2(Z(4, 5))
torch.fft.fftn(Z(2, 4, 4))
torch.fft.fftn(R(4, 8), s=(2, 16), dim=(0, 1))
torch.fft.rfftn(R(4, 8), s=(4, -1), dim=(0, 1))
torch.fft.irfftn(Z(4, 5), norm="forward")
torch.fft.rfft(R(2, 16)).abs() ** 2
torch.fft.fftfreq(5)
torch.fft.fftfreq(8, 0.5)
torch.fft.rfftfreq(7, d=2.0)
torch.fft.fftshift(torch.arange(5))
torch.fft.ifftshift(torch.arange(12).reshape(3, 4), dim=1)
torch.fft.fftshift(Z(3, 4))
torch.fft.fft(R(4), n=0)
torch.fft.fft(R(4), dim=1)
torch.fft.fft(torch.tensor(1.0))
torch.fft.fft(R(4), norm="other")
torch.fft.fft(R(2, 0))
torch.fft.fft(R(0, 4))
torch.fft.irfft(R(1))
torch.fft.fft(R(4), n=1)
torch.fft.fft2(R(4))
torch.fft.fft2(R(4, 4), dim=(0, 0))
torch.fft.fft2(R(4, 4), s=(2,))
torch.stft(R(200), 16, return_complex=True)
torch.stft(R(2, 100), 16, 5, window=torch.arange(12).float(), win_length=12, return_complex=True)
torch.stft(R(100), 16, center=False, normalized=True, return_complex=False)
torch.stft(R(60), 16, onesided=False, pad_mode="constant", return_complex=True)
torch.stft(R(60), 16)
torch.istft(Z(2, 9, 8), 16)
torch.istft(Z(9, 8), 16, 4, window=torch.arange(1, 17).float(), length=30)
torch.istft(Z(9, 8), 16, window=torch.arange(1, 17).float(), normalized=True, center=False)
torch.istft(Z(8, 8), 16)
torch.is_tensor(Z(3))
torch.result_type(R(3).double(), Z(3))
torch.result_type(Z(3), 1.5)
Z(3).cdouble()
torch.testing.assert_close(Z(3), Z(3) + 1e-7)
torch.testing.assert_close(Z(3), Z(3) + 1e-3)
torch.testing.assert_close(Z(3), Z(3, d=1))
repr(Z(3))
repr(Z(2, 3, d=1))
repr(Z(3) * 1e6)
repr(torch.zeros(2, dtype=torch.complex64))
str(torch.tensor([1 + 2j, -3.5 - 0.25j]))
torch.tan(Z(5))
torch.tanh(Z(5) * 3)
torch.sinh(Z(5))
Z(5).cosh()
torch.asin(Z(5))
torch.acos(Z(5))
torch.atan(Z(5))
torch.asinh(Z(5, d=1))
torch.acosh(Z(5))
torch.atanh(Z(5))
torch.log2(Z(5))
torch.log10(Z(5))
torch.log1p(Z(5))
torch.expm1(Z(5))
torch.exp2(Z(5))
torch.sigmoid(Z(5))
torch.nn.functional.silu(Z(5))
torch.sinc(Z(5))
torch.prod(Z(2, 3))
torch.prod(Z(2, 3), 1, keepdim=True)
torch.prod(Z(0, 3), 0)
torch.cumprod(Z(2, 5), 1)
torch.cumsum(R(3), 0, dtype=torch.complex64)
torch.std(Z(2, 3), 1)
Z(2, 3).var(correction=0)
torch.var_mean(Z(2, 3), 0)[1]
torch.logsumexp(Z(2, 3), 1)
torch.softmax(Z(2, 3), 1)
torch.log_softmax(Z(2, 3), 0)
torch.diff(Z(4), prepend=Z(2, k=5), append=Z(1, k=2))
torch.diff(Z(4), 2)
torch.logaddexp(Z(3), Z(3, k=5))
torch.lerp(Z(3), Z(3, k=5), 0.25)
torch.addcdiv(Z(3), Z(3), Z(3, k=5), value=2)
torch.addmm(Z(2, 4), Z(2, 3), Z(3, 4), beta=0.5, alpha=2)
torch.addmv(Z(2), Z(2, 3), Z(3))
torch.baddbmm(Z(2, 2, 4), Z(2, 2, 3), Z(2, 3, 4))
torch.addr(Z(2, 3), Z(2), Z(3))
torch.nn.functional.linear(Z(2, 3), Z(4, 3, k=5), Z(4))
torch.tensordot(Z(2, 3), Z(3, 2, k=5), 1)
torch.inner(Z(2, 3), Z(4, 3, k=5))
torch.kron(Z(2, 2), Z(2, k=5))
torch.nn.functional.conv1d(Z(1, 2, 6), Z(3, 2, 2, k=5), Z(3), 2, 1)
torch.nn.functional.conv2d(Z(1, 2, 4, 4), Z(2, 1, 2, 2, k=5), groups=2)
torch.nn.functional.conv_transpose2d(Z(1, 2, 2, 2), Z(2, 1, 2, 2, k=5), None, 2)
torch.meshgrid(Z(2), Z(3), indexing="ij")[0]
torch.atleast_2d(Z(3))
torch.block_diag(Z(2), Z(2, 2))
torch.cartesian_prod(Z(2), Z(2, k=5))
torch.diagflat(Z(3))
torch.hsplit(Z(2, 4), 2)[1]
Z(2, 4).split_with_sizes([1, 3], 1)[1]
Z(4).as_strided((2, 2), (1, 1))
torch.combinations(Z(3))
torch.nn.functional.pixel_shuffle(Z(1, 4, 2, 2), 2)
torch.trapezoid(Z(4))
torch.gradient(Z(4))[0]
Z(4).scatter(0, torch.tensor([2, 0]), Z(2, k=5))
Z(4).scatter(0, torch.tensor([2, 0]), 1.5)
Z(4).scatter_add(0, torch.tensor([2, 2]), Z(2, k=5))
Z(4).index_add(0, torch.tensor([1, 1]), Z(2, k=5))
Z(4).index_copy(0, torch.tensor([3, 1]), Z(2, k=5))
Z(4).index_fill(0, torch.tensor([3, 1]), 2)
Z(4).index_put((torch.tensor([3, 1]),), Z(2, k=5))
Z(4).masked_scatter(R(4) > 0, Z(4, k=5))
torch.select_scatter(Z(2, 3), Z(3, k=5), 0, 1)
torch.slice_scatter(Z(4), Z(2, k=5), 0, 1, 3)
torch.diagonal_scatter(Z(2, 2), Z(2, k=5))
torch.nonzero(torch.tensor([0j, 1j, 0j, 2 + 0j]))
torch.logical_not(torch.tensor([0j, 1j]))
torch.logical_and(torch.tensor([0j, 1j]), torch.tensor([1j, 1j]))
torch.logical_xor(torch.tensor([0j, 1j]), torch.tensor([1.0, 1.0]))
Z(3).clone().exp_()
Z(3).clone().mul_(2j).sqrt_()
Z(3).clone().masked_fill_(R(3) > 0, 1j)
Z(3).clone().abs_()
Z(1, 3).squeeze_(0)
Z(3).clone().unsqueeze_(0).t_()
Z(2, 3).clone().tril_()
Z(3).double()
Z(3).bool()
Z(3).where(R(3) > 0, Z(3, k=5))
torch.where(Z(3), Z(3), Z(3))
torch.isclose(torch.complex(torch.tensor([float("nan"), 0.0]), torch.ones(2)), torch.complex(torch.tensor([float("nan"), 1.0]), torch.ones(2)), equal_nan=True)
torch.linspace(0, 1 + 2j, 5)
torch.scalar_tensor(2 + 1j, dtype=torch.complex64)
Z(3).new_full((2,), 1 - 2j)
torch.can_cast(torch.complex64, torch.float32)
torch.can_cast(torch.float64, torch.complex64)
torch.linalg.inv(Z(3, 3, d=1) + 3 * torch.eye(3))
torch.linalg.solve(Z(3, 3, d=1) + 3 * torch.eye(3), Z(3, d=1))
torch.linalg.det(Z(3, 3, d=1))
torch.linalg.det(Z(2, 3, 3, d=1))
torch.linalg.slogdet(Z(3, 3, d=1))[0]
torch.linalg.slogdet(Z(3, 3, d=1))[1]
torch.linalg.pinv(Z(3, 2, d=1))
torch.linalg.svdvals(Z(3, 2, d=1))
torch.linalg.eigvalsh(Z(3, 3, d=1) + Z(3, 3, d=1).mH)
torch.linalg.cholesky(Z(3, 3, d=1) @ Z(3, 3, d=1).mH + 20 * torch.eye(3))
torch.linalg.cholesky(Z(2, 2, d=1) @ Z(2, 2, d=1).mH + 20 * torch.eye(2), upper=True)
torch.linalg.matrix_exp(Z(3, 3, d=1) * 0.25)
torch.linalg.matrix_power(Z(2, 2, d=1), -2)
torch.linalg.vecdot(Z(2, 3), Z(2, 3, k=5))
torch.linalg.vander(Z(3), N=3)
torch.linalg.cross(Z(2, 3), Z(2, 3, k=5))
torch.linalg.norm(Z(3, 3), "nuc")
torch.linalg.norm(Z(3, 3), 2)
torch.linalg.norm(Z(3, 3), 1)
torch.norm(Z(3, 3), "nuc")
torch.cov(Z(2, 4))
torch.dist(Z(3), Z(3, k=5))
torch.nn.functional.l1_loss(Z(3), Z(3, k=5))
torch.complex(R(3), R(3), out=torch.empty(0, dtype=torch.complex64))
torch.complex(R(3), R(3), out=torch.empty(0))
torch.complex(R(3).double(), R(3).double(), out=torch.empty(0, dtype=torch.complex64))
torch.polar(R(3).abs(), R(3), out=torch.empty(0, dtype=torch.complex64))
torch.fft.fft(R(4), out=torch.empty(0, dtype=torch.complex64)).shape
torch.fft.irfft(Z(3), out=torch.empty(0)).shape
"""

HELPERS = """
import torch
inf, nan = float("inf"), float("nan")
def R(*shape, k=1):
    n = 1
    for s in shape:
        n *= s
    return (((torch.arange(n) * 7919 * k + 13) % 101 - 50).float() / 16).reshape(shape)
def Z(*shape, k=1, d=0):
    a, b = R(*shape, k=k), R(*shape, k=k + 1)
    return torch.complex(a.double(), b.double()) if d else torch.complex(a, b)
def in_place(x, text):
    if text == "x *= 2j":
        x *= 2j
    elif text == "x += R(3)":
        x += R(3)
    elif text == "x[0] = 5":
        x[0] = 5
    elif text == "x[1:] = Z(2, k=4)":
        x[1:] = Z(2, k=4)
    elif text == "x.real = R(3)":
        x.real = R(3)
    else:
        x.mul_(2)
    return x
"""


def described(value):
    if not isinstance(value, torch.Tensor):
        return repr(str(value) if isinstance(value, (torch.dtype, torch.Size)) else value)
    return f"{str(value.dtype)[6:]} {tuple(value.shape)} {value.resolve_conj().flatten().tolist()}"


def main():
    exec(HELPERS, globals())
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "torch_complex.txt"), "w") as f:
        f.write(HELPERS.lstrip())
        for text in ROWS.strip().splitlines():
            try:
                value = described(eval(text))
            except Exception:
                value = "error"
            f.write(f"{text}\t{value}\n")


if __name__ == "__main__":
    main()
