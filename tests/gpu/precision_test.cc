// torch.autocast and factors of matrices on a real GPU, as scripts use them.
#include "tests/gpu/gpu_script.h"

namespace kiln::runtime {
namespace {

// The lists of what takes halves and what takes float32 are PyTorch's.
TEST(GpuPrecision, AutocastChoosesDTypes) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import torch.nn.functional as F
from torch import nn
x, layer = torch.ones(4, 8), nn.Linear(8, 4)
with torch.autocast("cuda"):
    h = layer(x)
    assert h.dtype is torch.float16 and h.relu().dtype is torch.float16 and (h + h).dtype is torch.float16
    for y in (h.softmax(-1), h.log_softmax(-1), h.sum(), h.exp(), h.log(), F.layer_norm(h, (4,)),
              F.mse_loss(h, torch.ones(4, 4)), F.cross_entropy(h, torch.tensor([0, 1, 2, 3]))):
        assert y.dtype is torch.float32, y.dtype
    with torch.autocast("cuda", enabled=False):
        assert layer(x).dtype is torch.float32
with torch.autocast("cpu"):
    assert layer(x).dtype is torch.float32
)");
}

/// Sums in registers, in tiles of all kinds: of one to three rounds of programs, of rows that begin at odd addresses.
TEST(GpuPrecision, ProductsOfFloat32AreExact) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
torch.manual_seed(4)
for m, n, k in ((1844, 2044, 508), (404, 8444, 132), (1843, 2047, 509), (2999, 131, 67), (260, 252, 2052)):
    for left in (False, True):
        for right in (False, True):
            a = torch.randn(k, m).T if left else torch.randn(m, k)
            b = torch.randn(n, k).T if right else torch.randn(k, n)
            c = torch.randn(n)
            want = a.double() @ b.double() + c.double()
            worst = ((a @ b + c).double() - want).abs().max()
            assert worst < 1e-6 * k, (m, n, k, left, right, worst)
)");
}

TEST(GpuPrecision, FactorsMultiplyToTheMatrix) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
torch.manual_seed(3)
def near(a, b, bound):
    assert bool(((a - b).abs() <= bound * (1 + b.abs())).all()), (a - b).abs().max()
for shape in ((1, 1), (3, 5), (7, 4), (5, 33, 17), (64, 64)):
    A = torch.randn(shape)
    m, n = shape[-2:]
    Q, R = torch.linalg.qr(A, "complete")
    U, S, Vh = torch.linalg.svd(A)
    L, V = torch.linalg.eigh(A @ A.mT)
    least = min(m, n)
    near(Q @ R, A, 1e-4)
    near(Q.mT @ Q, torch.eye(m), 1e-4)
    near((U[..., :least] * S.unsqueeze(-2)) @ Vh[..., :least, :], A, 1e-3)
    near(U.mT @ U, torch.eye(m), 1e-3)
    near(Vh @ Vh.mT, torch.eye(n), 1e-3)
    near((V * L.unsqueeze(-2)) @ V.mT, A @ A.mT, 1e-3)
)");
}

TEST(GpuPrecision, LargeMatricesAreFactored) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
torch.manual_seed(5)
L = torch.linalg
def near(a, b, bound=1e-10):
    assert bool(((a - b).abs() <= bound * (1 + b.abs().max())).all()), (a - b).abs().max()
for shape in ((65, 65), (2, 100, 100), (300, 129), (64, 257), (515, 515)):
    A = torch.randn(shape, dtype=torch.float64)
    m, n = shape[-2:]
    Q, R = L.qr(A, "complete")
    U, S, Vh = L.svd(A)
    G, least = A @ A.mT, min(m, n)
    w, V = L.eigh(G)
    near(Q @ R, A)
    near(Q.mT @ Q, torch.eye(m))
    near((U[..., :least] * S.unsqueeze(-2)) @ Vh[..., :least, :], A)
    near(U.mT @ U, torch.eye(m))
    near(Vh @ Vh.mT, torch.eye(n))
    near((V * w.unsqueeze(-2)) @ V.mT, G)
    G = G + torch.eye(m)
    C = L.cholesky(G)
    near(C @ C.mT, G)
    near(L.slogdet(G)[1], 2 * C.diagonal(dim1=-2, dim2=-1).log().sum(-1))
    if m == n:
        near(A @ L.solve(A, G), G, 1e-8)
)");
}

}  // namespace
}  // namespace kiln::runtime
