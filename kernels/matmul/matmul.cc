#include "kernels/matmul/matmul.h"

#include "support/diag.h"

namespace kiln::kernels {

Result<Launch> pointer_matmul_launch(Sources& sources, const Tensor& a, const Tensor& b, const Tensor& out,
                                     const MatmulTile& tile) {
  if (a.shape().size() != 2 || b.shape().size() != 2 || out.shape().size() != 2)
    return error(ErrorKind::kType, "a product takes and gives matrices");
  const int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  if (b.shape()[0] != k || out.shape()[0] != m || out.shape()[1] != n)
    return error(ErrorKind::kType, "[{}, {}] times [{}, {}] gives no [{}, {}]", m, k, b.shape()[0], n, out.shape()[0],
                 out.shape()[1]);
  KILN_TRY(Kernel kernel, sources.kernel("matmul", "matmul_kernel"));
  std::vector<std::optional<Arg>> args = {a, b, out, m, n, k};
  // All six strides are arguments, so that transposed and sliced operands need no copy.
  for (const Tensor* t : {&a, &b, &out}) args.insert(args.end(), {t->strides()[0], t->strides()[1]});
  args.insert(args.end(), {int64_t{tile.m}, int64_t{tile.n}, int64_t{tile.k}, int64_t{tile.group_m}, std::monostate{}});
  Launch made = launch(kernel, cdiv(m, tile.m) * cdiv(n, tile.n), std::move(args), tile.warps);
  made.options.num_stages = tile.stages;
  made.options.num_ctas = tile.ctas;
  made.options.launch_pdl = tile.pdl;
  return made;
}

}  // namespace kiln::kernels
