"""Distributions of matrices: Wishart, and Cholesky factors of correlations (LKJ)."""
import math

import torch
from torch.distributions import Beta, Distribution, ExponentialFamily, _drawn_gamma


def _log_diagonal(L):
    return torch.diagonal(L, 0, -2, -1).log().sum(-1)


class Wishart(ExponentialFamily):
    """Scatter matrices of `df` draws of a normal distribution; df is above the number of rows less one."""

    arg_constraints = {"df": "greater_than", "covariance_matrix": "positive_definite"}

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if given[0].ndim < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if precision_matrix is not None:
            covariance_matrix = torch.linalg.inv(precision_matrix)
        L = torch.linalg.cholesky(covariance_matrix) if scale_tril is None else scale_tril
        n = L.shape[-1]
        df = df if isinstance(df, torch.Tensor) else torch.tensor(df, dtype=L.dtype, device=L.device)
        if bool((df <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        batch = torch.broadcast_shapes(L.shape[:-2], df.shape)
        self.df, self.scale_tril = df.expand(batch), L.expand(batch + (n, n))
        super().__init__(batch, (n, n))

    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix = property(lambda self: torch.linalg.inv(self.covariance_matrix))
    mean = property(lambda self: self.df[..., None, None] * self.covariance_matrix)

    @property
    def mode(self):
        factor = self.df - self._event_shape[-1] - 1
        return torch.where(factor > 0, factor, float("nan"))[..., None, None] * self.covariance_matrix

    @property
    def variance(self):
        V = self.covariance_matrix
        diagonal = torch.diagonal(V, 0, -2, -1)
        return self.df[..., None, None] * (V.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def expand(self, batch_shape):
        n = self._event_shape[-1]
        return Wishart(self.df.expand(batch_shape), scale_tril=self.scale_tril.expand(tuple(batch_shape) + (n, n)))

    @torch.no_grad()
    def sample(self, sample_shape=()):
        """By Bartlett's factor: roots of chi-squared draws on the diagonal, normal ones below."""
        n = self._event_shape[-1]
        shape = self._extended_shape(sample_shape)
        L = self.scale_tril
        degrees = self.df.unsqueeze(-1) - torch.arange(n, dtype=L.dtype, device=L.device)
        roots = (2 * _drawn_gamma((degrees * 0.5).expand(shape[:-1]))).sqrt()
        below = torch.randn(shape, dtype=L.dtype, device=L.device).tril(-1)
        factor = L @ (below + torch.diag_embed(roots))
        return factor @ factor.mT

    def log_prob(self, value):
        n, nu, L = self._event_shape[-1], self.df, self.scale_tril
        whole = torch.broadcast_shapes(value.shape, L.shape)
        solved = torch.cholesky_solve(value.expand(whole), L.expand(whole))
        return (-nu * (n * math.log(2) / 2 + _log_diagonal(L)) - torch.mvlgamma(nu / 2, n)
                + (nu - n - 1) / 2 * torch.linalg.slogdet(value).logabsdet
                - torch.diagonal(solved, 0, -2, -1).sum(-1) / 2)

    def entropy(self):
        n, nu = self._event_shape[-1], self.df
        digammas = torch.digamma((nu / 2).unsqueeze(-1) - torch.arange(n, dtype=nu.dtype, device=nu.device) / 2).sum(-1)
        return ((n + 1) * (n * math.log(2) / 2 + _log_diagonal(self.scale_tril)) + torch.mvlgamma(nu / 2, n)
                - (nu - n - 1) / 2 * digammas + nu * n / 2)


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices, whose determinants' power is concentration - 1."""

    arg_constraints = {"concentration": "positive"}

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration = (concentration if isinstance(concentration, torch.Tensor) else
                              torch.tensor(concentration, dtype=torch.get_default_dtype()))
        super().__init__(self.concentration.shape, (dim, dim))
        # Lewandowski, Kurowicka and Joe, 2009, "Generating random correlation matrices based on vines and extended onion
        # method": the squares of a row's length left of the diagonal.
        at = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        at = torch.cat([torch.zeros_like(at[:1]), at])
        others = self.concentration.unsqueeze(-1) + 0.5 * (dim - 2) - 0.5 * at
        self._beta = Beta((at + 0.5).expand(others.shape), others)

    def expand(self, batch_shape):
        return LKJCholesky(self.dim, self.concentration.expand(batch_shape))

    def sample(self, sample_shape=()):
        with torch.no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = torch.randn(self._extended_shape(sample_shape), dtype=squares.dtype, device=squares.device).tril(-1)
            length = normal.norm(2, -1, True)
            w = squares.sqrt() * normal / torch.where(length == 0, 1.0, length)  # the first row is empty
            rest = (1 - w.square().sum(-1)).clamp(min=torch.finfo(w.dtype).tiny)
            return w + torch.diag_embed(rest.sqrt())

    def log_prob(self, value):
        n = self.dim
        diagonal = torch.diagonal(value, 0, -2, -1)[..., 1:]
        order = torch.arange(2, n + 1, device=value.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + n - order
        alpha = self.concentration + 0.5 * (n - 1)
        normalize = (0.5 * (n - 1) * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, n - 1)
                     - torch.lgamma(alpha) * (n - 1))
        return (order * diagonal.log()).sum(-1) - normalize
