"""torch.return_types: the results of functions that give several tensors, as tuples whose parts have names."""


class _Results(tuple):
    def __repr__(self):
        parts = ",\n".join(f"{name}={part!r}" for name, part in zip(self._fields, self))
        return f"torch.return_types.{type(self).__name__}(\n{parts})"


def _results(function, *fields):
    members = {name: property(lambda self, place=place: self[place]) for place, name in enumerate(fields)}
    return type(function, (_Results, ), {"_fields": fields, **members})


# max(dim) and min(dim), which the tensor itself makes, have the same names (repl/modules/torch/tensor_reduce.cc).
sort = _results("sort", "values", "indices")
topk = _results("topk", "values", "indices")
kthvalue = _results("kthvalue", "values", "indices")
median = _results("median", "values", "indices")
nanmedian = _results("nanmedian", "values", "indices")
mode = _results("mode", "values", "indices")
cummax = _results("cummax", "values", "indices")
cummin = _results("cummin", "values", "indices")
aminmax = _results("aminmax", "min", "max")
frexp = _results("frexp", "mantissa", "exponent")
histogram = _results("histogram", "hist", "bin_edges")
svd = _results("svd", "U", "S", "V")
triangular_solve = _results("triangular_solve", "solution", "cloned_coefficient")
lu_unpack = _results("lu_unpack", "P", "L", "U")
linalg_slogdet = _results("linalg_slogdet", "sign", "logabsdet")
linalg_qr = _results("linalg_qr", "Q", "R")
linalg_eig = _results("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh = _results("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_svd = _results("linalg_svd", "U", "S", "Vh")
linalg_lstsq = _results("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_cholesky_ex = _results("linalg_cholesky_ex", "L", "info")
linalg_inv_ex = _results("linalg_inv_ex", "inverse", "info")
linalg_solve_ex = _results("linalg_solve_ex", "result", "info")
linalg_lu = _results("linalg_lu", "P", "L", "U")
linalg_lu_factor = _results("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex = _results("linalg_lu_factor_ex", "LU", "pivots", "info")
