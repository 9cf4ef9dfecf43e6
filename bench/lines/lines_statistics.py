"""Statistics of rows, columns and tables."""
import torch
import torch.nn.functional as F

from draw import DEVICE, F32, integers, line, rand, uniform


@line
def column_sum(d):
    n = d.width()
    return lambda x: x.sum(0), [rand((d.rows(n), n), d.dtype())]


@line
def column_variance(d):
    n = d.width()
    # Two rows at least, as everywhere here where n - 1 divides.
    return lambda x: x.var(0), [rand((2 + d.rows(n), n))]


@line
def row_variance(d):
    n = 1 + d.width()
    return lambda x: x.var(-1), [rand((d.rows(n), n), d.dtype())]


@line
def max_of_all(d):
    n = d.width()
    # A reduction of all elements has a single result: programs have to meet.
    return lambda x: x.abs().max(), [rand((d.rows(n), n), d.dtype())]


@line
def standardize(d):
    n = d.width()
    # The statistics of a column, used in every row: two passes over the whole.
    return lambda x: (x - x.mean(0)) / (x.std(0) + 1e-8), [rand((2 + d.rows(n), n))]


@line
def scale_to_range(d):
    n = d.width()

    def f(x):
        lo, hi = x.min(dim=0).values, x.max(dim=0).values
        return (x - lo) / (hi - lo).clamp(min=1e-12)

    return f, [rand((2 + d.rows(n), n), d.dtype())]


@line
def covariance(d):
    n = d.pick([16, 64, 100, 256])
    m = 2 + d.rows(n, 1 << 23)

    def f(x):
        x = x - x.mean(0, keepdim=True)
        # The centred matrix is both operands of the product.
        return x.T @ x / (m - 1)

    return f, [rand((m, n))]


@line
def correlation(d):
    n, m = d.pick([16, 64, 100, 256]), 64 + d.upto(8000)

    def f(x):
        x = x - x.mean(1, keepdim=True)
        c = x @ x.T / (m - 1)
        # A diagonal of the product is needed before the product can be scaled.
        std = c.diagonal().sqrt()
        return (c / std[:, None] / std[None, :]).clamp(-1, 1)

    return f, [rand((n, m))]


@line
def row_correlation(d):
    n = 2 + d.width()
    m = d.rows(n)

    def f(x, y):
        x = x - x.mean(-1, keepdim=True)
        y = y - y.mean(-1, keepdim=True)
        # Three sums of one row in a single pass.
        return (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1) + 1e-8)

    return f, [rand((m, n)), rand((m, n))]


@line
def moments(d):
    n = d.width()

    def f(x):
        mean = x.mean(-1, keepdim=True)
        z = (x - mean) / x.std(-1, unbiased=False, keepdim=True)
        # Third and fourth moments of a standardized row.
        return mean.squeeze(-1), (z ** 3).mean(-1), (z ** 4).mean(-1)

    return f, [rand((d.rows(n), 2 + n))]


@line
def bin_values(d):
    n = d.numel()
    # A search in sorted edges for each element.
    return lambda x, edges: torch.bucketize(x, edges, right=True), [
        rand((n,)), torch.linspace(-3, 3, d.pick([11, 65, 257]), device=DEVICE)]


@line
def histogram(d):
    n, k = d.numel(), d.pick([10, 64, 256])
    return lambda x: torch.histc(x, bins=k, min=-3, max=3), [rand((n,))]


@line
def calibration_error(d):
    """Of 15 bins of confidence."""
    n = min(d.numel(), 1 << 21)

    def f(conf, correct):
        b = (conf * 15).long().clamp(max=14)
        # One-hot against 15 bins, since a sum by bins would have conflicts.
        hot = F.one_hot(b, 15).to(F32)
        count = hot.sum(0)
        acc = (hot * correct[:, None]).sum(0) / count.clamp(min=1)
        mean = (hot * conf[:, None]).sum(0) / count.clamp(min=1)
        return ((acc - mean).abs() * count / n).sum()

    return f, [uniform((n,)), (uniform((n,)) < 0.5).float()]


@line
def confusion_matrix(d):
    n, c = d.numel(), d.pick([2, 10, 21])

    def f(p, y):
        out = torch.zeros(c * c, dtype=torch.int64, device=p.device)
        # Additions to few places: many threads meet at each.
        return out.scatter_add_(0, y * c + p, torch.ones_like(p)).view(c, c)

    return f, [integers(c, (n,)), integers(c, (n,))]


@line
def quantile_clip(d):
    n = d.pick([64, 256, 1000, 4096])
    m = d.rows(n, 1 << 22)

    def f(x):
        # A quantile needs each row sorted.
        lo = torch.quantile(x, 0.01, dim=-1, keepdim=True)
        hi = torch.quantile(x, 0.99, dim=-1, keepdim=True)
        return torch.clamp(x, lo, hi)

    return f, [rand((m, n))]


@line
def median_deviation(d):
    n = d.pick([64, 255, 1000, 4096])
    m = d.rows(n, 1 << 22)

    def f(x):
        med = x.median(dim=-1, keepdim=True).values
        # The median of the distances from a median: two sorts, the second of a result of the first.
        mad = (x - med).abs().median(dim=-1, keepdim=True).values
        return (x - med) / (1.4826 * mad + 1e-8)

    return f, [rand((m, n))]


@line
def ranks(d):
    n = d.pick([64, 255, 1000, 4096])
    m = d.rows(n, 1 << 22)
    # The place of each element in the sorted row: the inverse of a permutation by sorting it.
    return lambda x: x.argsort(dim=-1).argsort(dim=-1).float() / (n - 1), [rand((m, n))]


@line
def gini(d):
    n = d.pick([64, 255, 1000, 4096])
    m = d.rows(n, 1 << 22)

    def f(x):
        x = x.sort(dim=-1).values
        i = torch.arange(1, n + 1, device=x.device, dtype=x.dtype)
        # By ranks; 1-based, hence the range.
        return ((2 * i - n - 1) * x).sum(-1) / (n * x.sum(-1))

    return f, [uniform((m, n))]


@line
def impute_means(d):
    n = d.width()

    def f(x):
        return torch.where(torch.isnan(x), x.nanmean(dim=0), x)

    m = 2 + d.rows(n)
    # A tenth of the elements is missing.
    return f, [torch.where(uniform((m, n)) < 0.1, float("nan"), rand((m, n)))]


@line
def rbf_kernel(d):
    m, n, k = 64 + d.upto(2000), 64 + d.upto(2000), d.pick([2, 10, 64])
    # Distances, then an exponential: the matrix is the result.
    return lambda a, b: torch.exp(-torch.cdist(a, b) ** 2 / (2 * 1.5 ** 2)), [rand((m, k)), rand((n, k))]


@line
def nearest_centroid(d):
    """A step of k-means: to which, and how far."""
    m, n, k = d.numel() // 64, d.pick([8, 64, 256]), d.pick([16, 64])

    def f(x, c):
        # Squared distances: a root would change no order.
        dist = ((x ** 2).sum(1, keepdim=True) - 2 * x @ c.T + (c ** 2).sum(1))
        best, label = dist.min(dim=1)
        return label, best.mean()

    return f, [rand((m, k)), rand((n, k))]


@line
def cosine_matrix(d):
    m, n, k = 64 + d.upto(2000), 64 + d.upto(2000), d.pick([64, 384, 768])
    t = d.dtype()
    return lambda a, b: F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T, [rand((m, k), t), rand((n, k), t)]


@line
def r2_score(d):
    n = d.width(1024)
    m = 2 + d.rows(n)
    return lambda y, p: (1 - ((y - p) ** 2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)).mean(), [rand((m, n)), rand((m, n))]


@line
def weighted_moments(d):
    n = d.width()
    m = d.rows(n)

    def f(x, w):
        w = w / w.sum()
        mean = (x * w[:, None]).sum(0)
        return mean, (w[:, None] * (x - mean) ** 2).sum(0)

    return f, [rand((m, n)), uniform((m,))]


@line
def log_scale(d):
    n = d.width()
    return lambda x: torch.sign(x) * torch.log1p(x.abs()), [rand((d.rows(n), n), d.dtype())]


@line
def ridge_gram(d):
    n, m = d.pick([16, 64, 200]), d.numel() // 64

    def f(x, y):
        # Two products with the same left operand.
        return x.T @ x + 0.1 * torch.eye(n, device=x.device), x.T @ y

    return f, [rand((m, n)), rand((m, 1))]


@line
def searchsorted_cdf(d):
    """Inverse transform sampling of rows, as of NeRF's fine samples."""
    n, k = d.pick([63, 64, 128]), d.pick([64, 128])
    m = d.rows(k, 1 << 22)

    def f(weights, u):
        pdf = (weights + 1e-5) / (weights + 1e-5).sum(-1, keepdim=True)
        cdf = torch.cat([torch.zeros_like(pdf[..., :1]), torch.cumsum(pdf, -1)], -1)
        # As published: the place on the right of equal values.
        i = torch.searchsorted(cdf, u, right=True)
        below, above = (i - 1).clamp(min=0), i.clamp(max=n)
        lo, hi = torch.gather(cdf, 1, below), torch.gather(cdf, 1, above)
        # An interval without weight would divide by nothing.
        width = torch.where(hi - lo < 1e-5, 1.0, hi - lo)
        return (below + (u - lo) / width) / n

    return f, [uniform((m, n)), uniform((m, k))]
