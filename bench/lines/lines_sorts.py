"""Sorts, selections and scans of their own: whole vectors up to 2^26 elements, rows of any width."""
import torch

from draw import BF16, DEVICE, F16, F32, line, rand


def vector(d):
    """2^20 to 2^26 elements, and a remainder."""
    return (1 << (14 if d.small else 20 + d.below(7))) + d.below(1000)


def matrix(d):
    """Rows of 32 to 2^17 elements, evenly in the logarithm, with 2^18 to 2^24 in all."""
    width = 1 << (5 + d.below(12))
    width += d.below(width)
    size = 1 << (14 if d.small else 18 + d.below(7))
    return max(1, size // width), width


@line
def sort_integers(d):
    return lambda x: torch.sort(x, stable=True), [
        torch.randint(-2**31, 2**31 - 1, (vector(d),), dtype=torch.int32, device=DEVICE)]


@line
def sort_floats(d):
    return lambda x: torch.sort(x, stable=True), [rand((vector(d),))]


@line
def sort_halves_descending(d):
    return lambda x: torch.sort(x, descending=True, stable=True), [rand((vector(d),), d.pick([BF16, F16]))]


@line
def sort_ids(d):
    """int64 numbers of a table."""
    most = d.pick([1000, 1 << 20, 1 << 40])
    return lambda x: torch.argsort(x, stable=True), [torch.randint(0, most, (vector(d),), device=DEVICE)]


@line
def sort_rows(d):
    return lambda x: torch.sort(x, dim=-1, stable=True), [rand(matrix(d), d.pick([F32, BF16]))]


@line
def sort_columns(d):
    return lambda x: torch.sort(x, dim=0, stable=True), [rand(matrix(d))]


@line
def topk_of_rows(d):
    rows, width = matrix(d)
    k = min(width, d.pick([1, 8, 50, 256]))
    return lambda x: torch.topk(x, k), [rand((rows, width))]


@line
def topk_of_all(d):
    k = d.pick([10, 100, 1000])
    return lambda x: torch.topk(x, k), [rand((vector(d),))]


@line
def scan_long(d):
    return lambda x: torch.cumsum(x, 0), [rand((vector(d),))]


@line
def scan_extremes(d):
    return lambda x: torch.cummax(x, -1), [rand(matrix(d))]


@line
def median_of_rows(d):
    return lambda x: torch.median(x, -1), [rand(matrix(d))]
