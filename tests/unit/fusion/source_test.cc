// What plans look like: golden texts of graphs, plans and sources, each compiled for its machine. KILN_BLESS=1 accepts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "compiler/fusion/infer.h"
#include "compiler/fusion/plan.h"
#include "tests/unit/fusion/run_plan.h"
#include "tests/unit/open_device.h"

namespace kiln::fusion::testing {
namespace {

/// An expression being written down.
struct Writer {
  Graph graph;

  int tensor(DType dtype, Shape shape, std::string name, Shape strides = {}) {
    if (strides.empty()) strides = row_major(shape);
    graph.nodes.push_back(input(dtype, std::move(shape), std::move(strides), 16, std::move(name)));
    return static_cast<int>(graph.nodes.size()) - 1;
  }
  int number(std::variant<bool, int64_t, double> v) {
    graph.nodes.push_back(scalar(v));
    return static_cast<int>(graph.nodes.size()) - 1;
  }
  /// A number that is an argument of the kernels.
  int argument(std::variant<bool, int64_t, double> v) {
    const int n = number(v);
    graph.nodes[static_cast<size_t>(n)].is_argument = true;
    return n;
  }
  int op(ExprOp which, std::vector<int> inputs, ExprAttributes a = {}) {
    auto n = append(graph, which, inputs, std::move(a));
    EXPECT_TRUE(n.ok()) << render(n.error());
    return *n;
  }
  int along(ExprOp which, std::vector<int> inputs, std::vector<int> axes, bool keepdim = false) {
    ExprAttributes a;
    a.axes = std::move(axes);
    a.keepdim = keepdim;
    return op(which, std::move(inputs), std::move(a));
  }
  int counts(int64_t n) {
    ExprAttributes a;
    a.shape = {n};
    a.dtype = DType::kI32;
    return op(ExprOp::kIota, {}, a);
  }
  int shaped(int x, Shape shape) {
    ExprAttributes a;
    a.shape = std::move(shape);
    return op(ExprOp::kReshape, {x}, std::move(a));
  }
  int slice(int x, Shape shape, Shape starts, Shape steps) {
    ExprAttributes a;
    a.shape = std::move(shape), a.starts = std::move(starts), a.steps = std::move(steps);
    return op(ExprOp::kSlice, {x}, std::move(a));
  }
  int take(std::vector<int> inputs, std::vector<int> axes, bool any_outside = false) {
    ExprAttributes a;
    a.axes = std::move(axes), a.any_outside = any_outside;
    return op(ExprOp::kTake, std::move(inputs), std::move(a));
  }
  int add(int a, int b) { return op(ExprOp::kAdd, {a, b}); }
  int mul(int a, int b) { return op(ExprOp::kMul, {a, b}); }
};

struct Case {
  const char* name;
  Machine machine;
  Variant variant;
  std::function<std::vector<int>(Writer&)> write;
  const char* in_ptx = "";  // of one of its kernels
};

constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16;

std::vector<Case> cases() {
  const Machine gpu = hopper_machine(), host = host_machine();
  return {
      {"numbers_as_arguments", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kBF16, {1000, 300}, "x"), n = w.tensor(DType::kI32, {1000, 300}, "n");
         const int alpha = w.argument(0.3), shift = w.argument(int64_t{5});
         const int scaled = w.mul(w.add(x, w.add(n, shift)), alpha);
         return {w.along(ExprOp::kSoftmax, {scaled}, {-1})};
       }},
      {"pointwise_chain", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kBF16, {1 << 21}, "x"), y = w.tensor(kBF16, {1 << 21}, "y");
         const int g = w.op(ExprOp::kGelu, {w.add(w.mul(x, w.number(2.0)), y)});
         return {w.op(ExprOp::kSub, {w.mul(g, w.op(ExprOp::kSigmoid, {y})), x})};
       },
       "ld.global.v4"},
      {"bias_relu", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         return {w.op(ExprOp::kRelu, {w.add(w.tensor(kF32, {300, 1000}, "x"), w.tensor(kF32, {1000}, "bias"))})};
       }},
      {"transposed_add", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         ExprAttributes swap;
         swap.axes = {1, 0};
         const int x = w.tensor(kBF16, {512, 256}, "x");
         return {w.add(w.op(ExprOp::kPermute, {x}, swap), w.tensor(kBF16, {256, 512}, "y"))};
       }},
      {"softmax", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         return {w.along(ExprOp::kSoftmax, {w.tensor(kBF16, {256, 1024}, "x")}, {-1})};
       }},
      {"scaled_masked_softmax", host, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.mul(w.tensor(kF32, {4, 37, 60}, "scores"), w.number(0.125));
         const int low = w.number(-std::numeric_limits<double>::infinity());
         return {
             w.along(ExprOp::kSoftmax, {w.op(ExprOp::kWhere, {w.tensor(DType::kI1, {37, 60}, "mask"), x, low})}, {-1})};
       }},
      {"layer_norm", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kBF16, {64, 8192}, "x"), g = w.tensor(kBF16, {8192}, "weight");
         return {w.along(ExprOp::kLayerNorm, {x, g, w.tensor(kBF16, {8192}, "bias")}, {-1})};
       }},
      {"loss_beside_what_reads_the_same", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int a = w.tensor(kBF16, {16, 4, 96, 96}, "a"), b = w.tensor(kBF16, {16, 4, 96, 96}, "b");
         const int time = w.tensor(kBF16, {16, 1, 1, 1}, "time");
         const int away = w.op(ExprOp::kSub, {a, b});
         return {w.add(b, w.mul(a, time)), w.along(ExprOp::kMean, {w.mul(away, away)}, {0, 1, 2, 3})};
       }},
      {"numbers_of_long_runs", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kBF16, {85, 4, 255, 255}, "x"), noise = w.tensor(kBF16, {85, 4, 255, 255}, "noise");
         const int t = w.tensor(DType::kI64, {85, 1, 1, 1}, "t");
         const int alpha = w.take({w.shaped(w.tensor(kF32, {1000}, "alphas"), {1000, 1, 1, 1}), t}, {0});
         return {w.add(w.mul(x, w.op(ExprOp::kSqrt, {alpha})), noise)};
       }},
      {"windows_made_for_a_product", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         // A convolution with few filters: the windows of the image, [11, 64 · 3, 58 · 56], as its product reads them.
         const int x = w.tensor(kBF16, {11, 64, 58, 56}, "x"), filters = w.tensor(kBF16, {16, 192}, "filters");
         ExprAttributes five;
         five.shape = {11, 64, 1, 58, 56};
         const int image = w.op(ExprOp::kReshape, {x}, five);
         auto shift = w.shaped(w.counts(3), {3, 1, 1});
         const int row = w.add(w.shaped(w.counts(58), {58, 1}), w.op(ExprOp::kSub, {shift, w.number(int64_t{1})}));
         const int windows = w.take({image, row}, {3}, true);
         return {w.op(ExprOp::kRelu, {w.op(ExprOp::kMatMul, {filters, w.shaped(windows, {11, 192, 3248})})})};
       }},
      {"nibbles_made_for_a_product", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         // Weights of four bits, two in a byte, with a scale for each 128 of them along k.
         const int x = w.tensor(kBF16, {24, 2176}, "x"), packed = w.tensor(DType::kU8, {4096, 1088, 1}, "packed");
         const int scale = w.tensor(kBF16, {4096, 17, 1}, "scale");
         const int low = w.op(ExprOp::kBitAnd, {packed, w.number(int64_t{15})}),
                   high = w.op(ExprOp::kShr, {packed, w.number(int64_t{4})});
         const int both = w.op(ExprOp::kWhere, {w.op(ExprOp::kLt, {w.counts(2), w.number(int64_t{1})}), low, high});
         ExprAttributes half, turned;
         half.dtype = kBF16, turned.axes = {1, 0};
         const int weights = w.mul(w.op(ExprOp::kCast, {w.shaped(both, {4096, 17, 128})}, half), scale);
         return {w.op(ExprOp::kMatMul, {x, w.op(ExprOp::kPermute, {w.shaped(weights, {4096, 2176})}, turned)})};
       }},
      {"losses_below_running_maxima", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int price = w.tensor(kF32, {1609, 514}, "price");
         const int loss = w.op(ExprOp::kSub, {price, w.along(ExprOp::kCumMax, {price}, {-1})});
         return {loss, w.along(ExprOp::kMin, {loss}, {-1})};
       }},
      {"windows_read_by_rows_and_elements", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {64, 64}, "x", {1, 1});  // two dimensions of one stride and size
         return {w.mul(x, w.number(2.0)), w.along(ExprOp::kSum, {x}, {1})};
       }},
      {"rows_added_where_they_go", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int row = w.tensor(DType::kI64, {5000, 1}, "row"), y = w.tensor(kBF16, {5000, 1024}, "y");
         const int place = w.add(w.mul(row, w.number(int64_t{1024})), w.counts(1024));
         ExprAttributes a;
         a.adds = true;
         const int scaled = w.mul(y, w.tensor(kBF16, {5000, 1}, "weight"));
         return {w.op(ExprOp::kPut, {scaled, place, w.op(ExprOp::kGe, {row, w.number(int64_t{0})})}, a)};
       },
       "add.noftz.v4.bf16x2"},
      {"rows_added_at_a_stride_that_varies", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         // As index_add_() has them: the stride is a number of the launch, and a multiple of the vectors' elements.
         const int i = w.tensor(DType::kI64, {16384, 1}, "i"), g = w.tensor(kF32, {16384, 1024}, "g");
         ExprAttributes narrow, adds;
         narrow.dtype = DType::kI32, adds.adds = true;
         const int row = w.mul(w.op(ExprOp::kCast, {i}, narrow), w.argument(int64_t{1024}));
         const int inside = w.op(ExprOp::kBitAnd, {w.op(ExprOp::kGe, {i, w.number(int64_t{0})}),
                                                   w.op(ExprOp::kLt, {i, w.argument(int64_t{1000})})});
         return {w.op(ExprOp::kPut, {g, w.add(row, w.counts(1024)), inside}, adds)};
       },
       "add.v4.f32"},
      {"a_product_put_where_it_goes", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int row = w.tensor(DType::kI64, {256, 1}, "row");
         const int keys = w.op(ExprOp::kMatMul, {w.tensor(kBF16, {256, 512}, "x"), w.tensor(kBF16, {512, 128}, "w")});
         const int place = w.add(w.mul(row, w.number(int64_t{128})), w.counts(128));
         return {w.op(ExprOp::kPut, {keys, place, w.op(ExprOp::kGe, {row, w.number(int64_t{0})})})};
       }},
      {"residual_rms_norm", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int h = w.add(w.tensor(kBF16, {64, 4000}, "x"), w.tensor(kBF16, {64, 4000}, "residual"));
         return {w.along(ExprOp::kRmsNorm, {h, w.tensor(kBF16, {4000}, "weight")}, {-1}), h};
       }},
      {"group_norm", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         auto shaped = [&](int x, Shape shape) {
           ExprAttributes a;
           a.shape = std::move(shape);
           return w.op(ExprOp::kReshape, {x}, a);
         };
         const int x = w.tensor(kBF16, {13, 320, 28, 28}, "x"), f = w.op(ExprOp::kAdd, {x, w.number(0.5)});
         const int y = shaped(f, {13, 32, 7840}), mean = w.along(ExprOp::kMean, {y}, {-1}, true);
         const int low = w.op(ExprOp::kSub, {y, mean});
         return {w.mul(shaped(low, {13, 320, 28, 28}), shaped(w.tensor(kBF16, {320}, "weight"), {320, 1, 1}))};
       }},
      {"adamw", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const Shape n = {262982};
         const int p = w.tensor(kF32, n, "p"), g = w.tensor(kBF16, n, "g"), m = w.tensor(kF32, n, "m");
         const int v = w.tensor(kF32, n, "v"), decay = w.argument(0.9), kept = w.argument(0.1), rate = w.argument(1e-3);
         const int m1 = w.add(w.mul(m, decay), w.mul(g, kept)), v1 = w.add(w.mul(v, decay), w.mul(w.mul(g, g), kept));
         const int size = w.add(w.op(ExprOp::kSqrt, {w.op(ExprOp::kDiv, {v1, kept})}), w.argument(1e-8));
         const int step = w.op(ExprOp::kDiv, {w.op(ExprOp::kDiv, {m1, kept}), size});
         return {w.op(ExprOp::kSub, {p, w.mul(step, rate)}), m1, v1};
       }},
      {"image_to_tensor", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(DType::kU8, {13, 224, 224, 3}, "x"), mean = w.tensor(kF32, {3, 1, 1}, "mean");
         ExprAttributes first;
         first.axes = {0, 3, 1, 2};
         const int y = w.op(ExprOp::kPermute, {w.op(ExprOp::kDiv, {x, w.number(255.0)})}, first);
         return {w.op(ExprOp::kSub, {y, mean})};
       }},
      {"images_or_their_mirror_images", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(DType::kU8, {10, 3, 299, 299}, "x"), mean = w.tensor(kF32, {3, 1, 1}, "mean");
         auto normalized = [&](int image) {
           return w.op(ExprOp::kSub, {w.op(ExprOp::kDiv, {image, w.number(255.0)}), mean});
         };
         ExprAttributes along;
         along.axes = {3};
         const int places = w.op(ExprOp::kSub, {w.number(int64_t{298}), w.shaped(w.counts(299), {1, 1, 1, 299})});
         const int flipped = w.op(ExprOp::kTake, {x, places}, along);
         return {
             w.op(ExprOp::kWhere, {w.tensor(DType::kI1, {10, 1, 1, 1}, "flip"), normalized(flipped), normalized(x)})};
       }},
      {"scales_of_blocks", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         // Scales repeated along rows, then along columns: one look for each element.
         const int x = w.tensor(kBF16, {1920, 256}, "x"), scales = w.tensor(kF32, {15, 2}, "scales");
         auto of_blocks = [&](int64_t n, Shape shape) {
           return w.shaped(w.op(ExprOp::kFloorDiv, {w.counts(n), w.number(int64_t{128})}), std::move(shape));
         };
         const int rows = w.take({scales, of_blocks(1920, {1920, 1})}, {0});
         return {w.mul(x, w.take({rows, of_blocks(256, {1, 256})}, {1}))};
       }},
      {"selects_that_stay", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         // What else is read is computed anyway; zeros of two signs are two numbers.
         const int x = w.tensor(kF32, {300, 512}, "x"), y = w.tensor(kF32, {300, 512}, "y"),
                   is_x = w.tensor(DType::kI1, {300, 512}, "is_x");
         const int a = w.op(ExprOp::kExp, {x}), b = w.op(ExprOp::kExp, {y});
         const int zero = w.op(ExprOp::kMul, {x, w.number(0.0)}), minus = w.op(ExprOp::kMul, {y, w.number(-0.0)});
         return {a, w.op(ExprOp::kWhere, {is_x, a, b}), w.op(ExprOp::kWhere, {is_x, zero, minus})};
       }},
      {"channel_scales", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kBF16, {37, 128, 14, 14}, "x"), scale = w.tensor(kF32, {128, 1, 1}, "scale");
         return {w.add(w.mul(x, scale), w.tensor(kF32, {128, 1, 1}, "shift"))};
       }},
      {"wide_softmax", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         return {w.along(ExprOp::kSoftmax, {w.tensor(kBF16, {4096, 32768}, "x")}, {-1})};
       }},
      {"short_rows_of_logarithms", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int u =
             w.op(ExprOp::kLog, {w.op(ExprOp::kNeg, {w.op(ExprOp::kLog, {w.tensor(kF32, {5000, 320}, "u")})})});
         return {w.along(ExprOp::kSoftmax, {w.op(ExprOp::kSub, {w.tensor(kF32, {5000, 320}, "x"), u})}, {-1})};
       }},
      {"long_softmax", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         return {w.along(ExprOp::kSoftmax, {w.tensor(kF32, {300, 100000}, "x")}, {-1})};
       }},
      {"place_of_greatest", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.op(ExprOp::kAdd, {w.tensor(kBF16, {8192, 4000}, "x"), w.tensor(kBF16, {4000}, "bias")});
         return {w.along(ExprOp::kArgMax, {x}, {-1})};
       }},
      {"running_sums", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kBF16, {300, 100000}, "x");
         return {w.op(ExprOp::kMul, {w.along(ExprOp::kCumSum, {w.op(ExprOp::kExp, {x})}, {-1}), x})};
       }},
      {"running_sums_of_long_rows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kBF16, {2, 3000001}, "x");
         return {w.op(ExprOp::kMul, {w.along(ExprOp::kCumSum, {w.op(ExprOp::kExp, {x})}, {-1}), x})};
       }},
      {"running_products_of_a_long_row", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {1 << 19}, "x");
         return {w.along(ExprOp::kCumProd, {x}, {0}), w.along(ExprOp::kCumSum, {x}, {0})};
       }},
      {"running_products_of_columns", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         return {w.along(ExprOp::kCumProd, {w.tensor(kF32, {5000, 9000}, "x")}, {0})};
       }},
      {"running_sums_of_short_columns", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         return {w.along(ExprOp::kCumSum, {w.tensor(kF32, {900, 3000}, "x")}, {0})};
       }},
      {"patches_put_together", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         // (images, rows, columns, 2, 2, channels): pairs of columns are as short as runs of the result are.
         ExprAttributes a;
         a.axes = {0, 5, 1, 3, 2, 4};
         return {w.op(ExprOp::kRelu, {w.op(ExprOp::kPermute, {w.tensor(kF32, {16, 32, 32, 2, 2, 16}, "x")}, a)})};
       }},
      {"pixels_of_small_pictures", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(DType::kF16, {136, 256, 31, 31}, "x");
         const Shape half = {136, 256, 15, 15};
         return {w.add(w.slice(x, half, {0, 0, 0, 0}, {1, 1, 2, 2}), w.slice(x, half, {0, 0, 0, 1}, {1, 1, 2, 2}))};
       }},
      {"column_sums", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         return {w.along(ExprOp::kSum, {w.op(ExprOp::kExp, {w.tensor(kF32, {300, 5000}, "x")})}, {0})};
       }},
      {"mean_of_all", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         return {w.along(ExprOp::kMean, {w.tensor(kBF16, {1000, 3001}, "x")}, {})};
       }},
      {"gelu_linear", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int xw = w.op(ExprOp::kMatMul, {w.tensor(kBF16, {512, 1024}, "x"), w.tensor(kBF16, {1024, 2048}, "w")});
         return {w.op(ExprOp::kGelu, {w.add(xw, w.tensor(kBF16, {2048}, "b"))})};
       },
       "wgmma"},
      {"linear_residual_host", host, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {100, 64}, "x");
         const int xw = w.op(ExprOp::kMatMul, {x, w.tensor(kF32, {64, 200}, "w", {1, 64})});
         return {w.add(w.mul(w.add(xw, w.tensor(kF32, {200}, "b")), w.number(0.5)), w.tensor(kF32, {100, 200}, "r"))};
       }},
      {"attention_scores", host, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         ExprAttributes swap;
         swap.axes = {0, 2, 1};
         const int q = w.tensor(kF32, {3, 20, 16}, "q"), k = w.tensor(kF32, {3, 30, 16}, "k");
         const int s = w.op(ExprOp::kMatMul, {q, w.op(ExprOp::kPermute, {k}, swap)});
         return {w.along(ExprOp::kSoftmax, {w.mul(s, w.number(0.25))}, {-1})};
       }},
      {"beyond_32_bits", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {70001, 40000}, "x");
         return {w.op(ExprOp::kExp, {x}), w.along(ExprOp::kSum, {w.mul(x, w.tensor(kF32, {40000}, "w"))}, {1})};
       }},
      {"wide_layer_norm", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kBF16, {64, 32768}, "x"), g = w.tensor(kBF16, {32768}, "weight");
         return {w.along(ExprOp::kLayerNorm, {x, g, w.tensor(kBF16, {32768}, "bias")}, {-1})};
       }},
      {"rms_norm_read_again", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kBF16, {640, 16383}, "x");
         return {w.along(ExprOp::kRmsNorm, {x, w.tensor(kBF16, {16383}, "weight")}, {-1})};
       }},
      {"linear_of_batches", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int xw =
             w.op(ExprOp::kMatMul, {w.tensor(kBF16, {4, 128, 512}, "x"), w.tensor(kBF16, {512, 1024}, "w", {1, 512})});
         const int out = w.add(w.op(ExprOp::kSilu, {xw}), w.tensor(kBF16, {4, 128, 1024}, "residual"));
         return {out, xw};
       },
       "wgmma"},
      {"many_rows_summed", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         return {w.along(ExprOp::kSum, {w.tensor(kBF16, {100000, 300}, "x")}, {0})};
       }},
      {"bags_of_looked_up_rows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int rows = w.shaped(w.tensor(kF32, {1000, 1, 128}, "rows"), {1000, 1, 128});
         const int places = w.shaped(w.tensor(DType::kI64, {600, 20}, "places"), {600, 20, 1});
         return {w.along(ExprOp::kSum, {w.shaped(w.take({rows, places}, {0}), {600, 20, 128})}, {1})};
       }},
      {"sums_of_square_windows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.shaped(w.tensor(kF32, {5, 40, 40}, "x"), {5, 40, 40, 1, 1});
         const int place = w.add(w.counts(38), w.shaped(w.counts(3), {3, 1}));
         const int y = w.shaped(place, {3, 1, 38, 1}), z = w.shaped(place, {1, 3, 1, 38});
         return {w.along(ExprOp::kSum, {w.take({x, y, z}, {1, 2}, true)}, {1, 2})};
       }},
      {"weighted_sums_of_points", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int rgb = w.tensor(kF32, {4096, 96, 3}, "rgb"), weights = w.tensor(kF32, {4096, 96, 1}, "weights");
         return {w.along(ExprOp::kSum, {w.mul(rgb, weights)}, {1})};
       }},
      {"counts_of_classes", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         ExprAttributes i64;
         i64.dtype = DType::kI64;
         const int x = w.shaped(w.tensor(DType::kI32, {30000}, "x"), {30000, 1});
         return {w.along(ExprOp::kSum, {w.op(ExprOp::kCast, {w.op(ExprOp::kEq, {x, w.counts(64)})}, i64)}, {0})};
       }},
      {"parts_of_odd_rows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.slice(w.tensor(kF32, {2575, 6218}, "x"), {2575, 3109}, {0, 0}, {1, 1});
         return {w.mul(w.op(ExprOp::kSilu, {x}), w.tensor(kF32, {2575, 3109}, "gate"))};
       }},
      {"distances_of_points", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int p = w.shaped(w.tensor(kF32, {845, 3}, "p"), {845, 1, 3}), q = w.tensor(kF32, {820, 3}, "q");
         const int away = w.op(ExprOp::kSub, {p, q}), squares = w.along(ExprOp::kSum, {w.mul(away, away)}, {2});
         return {w.along(ExprOp::kMin, {squares}, {1}), w.along(ExprOp::kMin, {squares}, {0})};
       }},
      {"points_times_matrix", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int turned =
             w.op(ExprOp::kMatMul, {w.tensor(kF32, {6, 5000, 3}, "points"), w.tensor(kF32, {6, 3, 3}, "turn")});
         return {w.add(turned, w.tensor(kF32, {6, 1, 3}, "shift"))};
       }},
      {"sums_in_registers_of_odd_rows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int y = w.tensor(kF32, {1003, 1001}, "y");
         ExprAttributes turned;
         turned.axes = {1, 0};
         return {w.op(ExprOp::kMatMul, {w.tensor(kF32, {1000, 1001}, "x"), w.op(ExprOp::kPermute, {y}, turned)})};
       }},
      {"outer_product", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int outer = w.op(ExprOp::kMatMul, {w.tensor(kF32, {1698, 1}, "x"), w.tensor(kF32, {1, 8560}, "y")});
         return {w.add(outer, w.tensor(kF32, {8560}, "bias"))};
       }},
      {"channels_last", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.shaped(w.tensor(kBF16, {8, 3, 224, 224}, "x"), {8, 3, 50176});
         ExprAttributes a;
         a.axes = {0, 2, 1};
         return {w.op(ExprOp::kRelu, {w.op(ExprOp::kPermute, {x}, a)})};
       }},
      {"halves_read_apart", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.add(w.tensor(kF32, {300, 2048}, "x"), w.tensor(kF32, {2048}, "b"));
         const int even = w.slice(x, {300, 1024}, {0, 0}, {1, 2}), odd = w.slice(x, {300, 1024}, {0, 1}, {1, 2});
         return {w.mul(w.mul(even, w.op(ExprOp::kSigmoid, {even})), odd)};
       }},
      {"windows_two_apart", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         // A warp loads one element of each thread at a time, and threads have few, to lie close.
         const int x = w.tensor(DType::kF16, {20000, 31, 31}, "x");
         auto window = [&](int64_t row, int64_t column) {
           return w.slice(x, {20000, 15, 15}, {0, row, column}, {1, 2, 2});
         };
         return {w.op(ExprOp::kMaximum, {w.op(ExprOp::kMaximum, {window(0, 0), window(0, 1)}),
                                         w.op(ExprOp::kMaximum, {window(1, 0), window(1, 1)})})};
       }},
      {"halves_of_several_steps", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int a = w.tensor(kF32, {500, 1, 4}, "a"), b = w.tensor(kF32, {1, 300, 4}, "b");
         const int low = w.op(ExprOp::kMaximum, {w.slice(a, {500, 1, 2}, {0, 0, 0}, {1, 1, 1}),
                                                 w.slice(b, {1, 300, 2}, {0, 0, 0}, {1, 1, 1})});
         const int high = w.op(ExprOp::kMinimum, {w.slice(a, {500, 1, 2}, {0, 0, 2}, {1, 1, 1}),
                                                  w.slice(b, {1, 300, 2}, {0, 0, 2}, {1, 1, 1})});
         const int sides = w.op(ExprOp::kRelu, {w.op(ExprOp::kSub, {high, low})});
         return {w.mul(w.slice(sides, {500, 300, 1}, {0, 0, 0}, {1, 1, 1}),
                       w.slice(sides, {500, 300, 1}, {0, 0, 1}, {1, 1, 1}))};
       }},
      {"padded_windows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         // The greatest of 2 x 2 windows of a padded image: the padding is computed in each window, and is no tensor.
         const int x = w.shaped(w.op(ExprOp::kRelu, {w.tensor(kF32, {5, 40, 40}, "x")}), {5, 40, 40});
         const int place = w.op(ExprOp::kSub, {w.counts(42), w.number(int64_t{1})});
         const int rows = w.shaped(place, {42, 1}), columns = w.shaped(place, {1, 42});
         const int inside = w.op(ExprOp::kGe, {place, w.number(int64_t{0})});
         const int both = w.op(ExprOp::kLogicalAnd, {w.shaped(inside, {42, 1}), w.shaped(inside, {1, 42})});
         const int padded = w.op(ExprOp::kWhere, {both, w.take({x, rows, columns}, {1, 2}, true), w.number(-1e30)});
         int most = -1;
         for (int64_t i : {0, 1})
           for (int64_t j : {0, 1}) {
             const int part = w.slice(padded, {5, 41, 41}, {0, i, j}, {1, 1, 1});
             most = most < 0 ? part : w.op(ExprOp::kMaximum, {most, part});
           }
         return {most};
       }},
      // Windows whose sum is reshaped: the adds move as well, and all windows with them.
      {"windows_behind_a_reshape", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {6, 32, 5, 7}, "x");
         const int squares = w.shaped(w.op(ExprOp::kMul, {x, x}), {6, 32, 35});
         const int place = w.op(ExprOp::kSub, {w.counts(34), w.number(int64_t{1})});
         const int inside = w.shaped(w.op(ExprOp::kLogicalAnd, {w.op(ExprOp::kGe, {place, w.number(int64_t{0})}),
                                                                w.op(ExprOp::kLt, {place, w.number(int64_t{32})})}),
                                     {34, 1});
         const int padded =
             w.op(ExprOp::kWhere, {inside, w.take({squares, w.shaped(place, {34, 1})}, {1}, true), w.number(0.0)});
         int sum = -1;
         for (int64_t i : {0, 1, 2}) {
           const int part = w.slice(padded, {6, 32, 35}, {0, i, 0}, {1, 1, 1});
           sum = sum < 0 ? part : w.add(sum, part);
         }
         return {w.op(ExprOp::kMul, {x, w.shaped(sum, {6, 32, 5, 7})})};
       }},
      {"product_behind_a_reshape", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int xw =
             w.op(ExprOp::kMatMul, {w.tensor(kBF16, {4, 64, 576}, "w"), w.tensor(kBF16, {4, 576, 3136}, "x")});
         const int image = w.shaped(xw, {4, 64, 56, 56});
         return {w.op(ExprOp::kRelu, {w.add(image, w.shaped(w.tensor(kBF16, {64}, "b"), {64, 1, 1}))})};
       },
       "wgmma"},
      {"sine_behind_a_product", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int xw = w.op(ExprOp::kMatMul, {w.tensor(kBF16, {512, 256}, "x"), w.tensor(kBF16, {256, 512}, "w")});
         return {w.op(ExprOp::kSin, {xw})};
       },
       "wgmma"},
      {"power_behind_a_product", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int xw = w.op(ExprOp::kMatMul, {w.tensor(kBF16, {512, 256}, "x"), w.tensor(kBF16, {256, 512}, "w")});
         return {w.op(ExprOp::kPow, {w.op(ExprOp::kAbs, {xw}), w.number(0.7)})};
       },
       "wgmma"},
      // Rows that begin within sectors: two blocks share a program, and read half of its columns each.
      {"product_of_odd_rows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         return {w.op(ExprOp::kMatMul, {w.tensor(kBF16, {2040, 1000}, "x"), w.tensor(kBF16, {1000, 2056}, "w")})};
       },
       "multicast"},
      // 1216 columns are four tiles of 256 + 64: a second sum has the last ones, and an epilogue of its own.
      {"product_of_uneven_columns", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int p = w.op(ExprOp::kMatMul, {w.tensor(kBF16, {4224, 5920}, "x"), w.tensor(kBF16, {5920, 1216}, "w")});
         return {
             w.add(w.op(ExprOp::kGelu, {w.add(p, w.tensor(kBF16, {1216}, "b"))}), w.tensor(kBF16, {4224, 1216}, "r"))};
       },
       "wgmma"},
      // Three tensors read and two written behind it: the product's programs would wait for all of them.
      {"momentum_behind_a_product", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int g = w.op(ExprOp::kMatMul, {w.tensor(kBF16, {4096, 1024}, "x"), w.tensor(kBF16, {1024, 4096}, "dy")});
         const int m = w.add(w.tensor(kF32, {4096, 4096}, "m"), g);
         return {w.add(w.tensor(kF32, {4096, 4096}, "p"), w.mul(m, w.tensor(kF32, {4096, 4096}, "s"))), m};
       },
       "wgmma"},
      {"sums_of_few_long_rows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.op(ExprOp::kSigmoid, {w.tensor(kBF16, {5, 65025}, "x")}), y = w.tensor(kF32, {5, 65025}, "y");
         return {w.along(ExprOp::kSum, {w.mul(x, y)}, {1}), w.along(ExprOp::kSum, {x}, {1}),
                 w.along(ExprOp::kSum, {y}, {1})};
       }},
      // Divisors outside of a row are ones: a quotient by zero takes a path of its own.
      {"sums_of_quotients", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {331, 3000}, "x"), scale = w.tensor(kF32, {3000}, "scale");
         return {w.along(ExprOp::kSum, {w.op(ExprOp::kDiv, {x, scale})}, {1})};
       }},
      // A step of binary searches in rows that are put together of two: what says which of them a place is in is made
      // of the place, and no table of one row.
      {"looks_into_joined_rows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {4096, 64}, "x"), row = w.shaped(w.counts(65), {1, 65});
         const int before = w.op(ExprOp::kSub, {row, w.number(int64_t{1})});
         const int joined = w.op(ExprOp::kWhere, {w.op(ExprOp::kLt, {row, w.number(int64_t{1})}), w.number(0.0),
                                                  w.take({w.add(x, x), before}, {1}, true)});
         const int first = w.take({joined, w.tensor(DType::kI32, {4096, 64}, "i")}, {1}, true);
         const int next =
             w.op(ExprOp::kWhere, {w.op(ExprOp::kLt, {first, x}), w.number(int64_t{4}), w.number(int64_t{1})});
         return {w.take({joined, next}, {1}, true)};
       }},
      // Whether a padded row has an element at a place is known of all rows at once; the last program asks anew.
      {"columns_of_padded_rows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {634633, 3}, "x"), row = w.shaped(w.counts(4), {1, 4});
         const int before = w.op(ExprOp::kSub, {row, w.number(int64_t{1})});
         const int padded = w.op(ExprOp::kWhere, {w.op(ExprOp::kLt, {row, w.number(int64_t{1})}), w.number(0.0),
                                                  w.take({x, before}, {1}, true)});
         return {w.mul(w.slice(padded, {634633, 1}, {0, 0}, {1, 1}), w.slice(padded, {634633, 1}, {0, 1}, {1, 1}))};
       }},
      // Scores that are made of three others, and read by the sums of rows: of each row's own class one is computed.
      {"own_class_of_scores", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {94, 15785}, "x"), own = w.tensor(DType::kI64, {94, 1}, "own");
         const int phi = w.op(ExprOp::kSub, {w.mul(x, w.number(0.88)), w.op(ExprOp::kTanh, {x})});
         const int score =
             w.op(ExprOp::kWhere, {w.op(ExprOp::kGt, {x, w.number(-0.88)}), phi, w.op(ExprOp::kSin, {x})});
         const int total = w.op(ExprOp::kLog, {w.along(ExprOp::kSum, {w.op(ExprOp::kExp, {score})}, {1}, true)});
         return {w.op(ExprOp::kSub, {total, w.take({score, own}, {1})})};
       }},
      // A quarter of each head turns, beside what does not: computed for the whole head, loaded where it is.
      {"quarter_of_a_head_turns", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kBF16, {4000, 80}, "x"), cos = w.tensor(kBF16, {4000, 20}, "cos");
         const int sin = w.tensor(kBF16, {4000, 20}, "sin"), other = w.slice(x, {4000, 20}, {0, 20}, {1, 1});
         const int turned = w.add(w.mul(w.slice(x, {4000, 20}, {0, 0}, {1, 1}), cos), w.mul(other, sin));
         const int row = w.shaped(w.counts(80), {1, 80});
         const int rest = w.take(
             {w.slice(x, {4000, 60}, {0, 20}, {1, 1}), w.op(ExprOp::kSub, {row, w.number(int64_t{20})})}, {1}, true);
         return {w.op(ExprOp::kWhere,
                      {w.op(ExprOp::kLt, {row, w.number(int64_t{20})}), w.take({turned, row}, {1}, true), rest})};
       }},
      // Sums are divided before they are stored: what repeats their ends reads them as the result does.
      {"repeated_ends_of_quotients", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {500, 300, 20}, "x");
         const int y = w.op(ExprOp::kDiv, {w.along(ExprOp::kSum, {x}, {2}), w.number(10.0)});
         const int before = w.op(ExprOp::kSub, {w.counts(304), w.number(int64_t{2})});
         const int place = w.op(ExprOp::kClamp, {before, w.number(int64_t{0}), w.number(int64_t{299})});
         return {y, w.op(ExprOp::kRelu, {w.take({y, w.shaped(place, {1, 304})}, {1})})};
       }},
      // Two sums and a quotient side by side: each is stored where it belongs, by the kernel that computes it.
      {"stack_of_sums", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {700001, 1}, "x"), y = w.tensor(kF32, {700001, 1}, "y");
         const int size = w.op(ExprOp::kSqrt, {w.add(w.mul(x, x), w.mul(y, y))});
         const int tan = w.op(ExprOp::kTanh, {w.mul(x, w.op(ExprOp::kSin, {y}))});
         const int parts[] = {w.mul(tan, w.op(ExprOp::kTanh, {size})), w.op(ExprOp::kGelu, {w.mul(tan, y)}),
                              w.op(ExprOp::kGelu, {w.op(ExprOp::kExp, {size})})};
         const int column = w.shaped(w.counts(3), {1, 3});
         auto at = [&](int64_t k) {
           const int place = k == 0 ? column : w.op(ExprOp::kSub, {column, w.number(k)});
           return w.take({parts[k], place}, {1}, true);
         };
         const int last = w.op(ExprOp::kWhere, {w.op(ExprOp::kLt, {column, w.number(int64_t{2})}), at(1), at(2)});
         return {w.op(ExprOp::kWhere, {w.op(ExprOp::kLt, {column, w.number(int64_t{1})}), at(0), last})};
       }},
      // A penalty of looked-up rows beside their products: sums of each row first, in the kernel that looks them up.
      {"penalty_of_looked_up_rows", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         auto rows = [&](const char* name, const char* places) {
           const int table = w.tensor(kF32, {40000, 1, 64}, name), at = w.tensor(DType::kI64, {11143, 1}, places);
           return w.take({table, at}, {0});
         };
         const int a = rows("users", "u"), b = rows("items", "i");
         const int score = w.along(ExprOp::kSum, {w.mul(a, b)}, {2});
         const int penalty =
             w.add(w.along(ExprOp::kSum, {w.mul(a, a)}, {0, 1, 2}), w.along(ExprOp::kSum, {w.mul(b, b)}, {0, 1, 2}));
         return {w.add(w.along(ExprOp::kMean, {w.op(ExprOp::kSigmoid, {score})}, {0, 1}), penalty)};
       }},
      // What is missing is asked of x once more where x is read anyway: the answers are no tensor.
      {"means_for_what_is_missing", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {11842, 1285}, "x"), missing = w.op(ExprOp::kIsNan, {x});
         const int sums = w.along(ExprOp::kSum, {w.op(ExprOp::kWhere, {missing, w.number(0.0), x})}, {0});
         const int count = w.along(ExprOp::kSum, {w.op(ExprOp::kLogicalNot, {missing})}, {0});
         return {w.op(ExprOp::kWhere, {missing, w.op(ExprOp::kDiv, {sums, count}), x})};
       }},
      // Both operands of float32 lie across k: a thread has 16 x 8 sums, and few tiles are split many times.
      {"second_moments", gpu, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         const int x = w.tensor(kF32, {83888, 100}, "x");
         ExprAttributes turned;
         turned.axes = {1, 0};
         return {w.op(ExprOp::kMatMul, {w.op(ExprOp::kPermute, {x}, turned), x})};
       }},
      {"called_function", host, Variant::kFused,
       [](Writer& w) -> std::vector<int> {
         ExprAttributes a;
         a.function = std::make_shared<ExprFunction>(
             ExprFunction{"mix", "@triton.jit\ndef mix(a, b):\n    return 2.0 * a + b\n", {"mix"}});
         return {
             w.op(ExprOp::kSqrt, {w.op(ExprOp::kCall, {w.tensor(kF32, {50, 7}, "x"), w.tensor(kF32, {7}, "y")}, a)})};
       }},
      {"library_epilogue", gpu, Variant::kLibraryEpilogue,
       [](Writer& w) -> std::vector<int> {
         const int xw = w.op(ExprOp::kMatMul, {w.tensor(kBF16, {512, 1024}, "x"), w.tensor(kBF16, {1024, 2048}, "w")});
         return {w.along(ExprOp::kSoftmax, {w.op(ExprOp::kRelu, {w.add(xw, w.tensor(kBF16, {2048}, "b"))})}, {-1})};
       }},
      {"library", gpu, Variant::kLibrary,
       [](Writer& w) -> std::vector<int> {
         const int xw = w.op(ExprOp::kMatMul, {w.tensor(kBF16, {512, 1024}, "x"), w.tensor(kBF16, {1024, 2048}, "w")});
         return {w.op(ExprOp::kGelu, {w.add(xw, w.tensor(kBF16, {2048}, "b"))})};
       }},
  };
}

class Sources : public ::testing::TestWithParam<Case> {};

TEST_P(Sources, AreAsAcceptedAndCompile) {
  const Case& c = GetParam();
  Writer w;
  w.graph.outputs = c.write(w);
  auto made = plan(w.graph, {c.variant, c.machine});
  ASSERT_TRUE(made.ok()) << render(made.error());
  std::string text = to_string(w.graph) + "\n" + plan_text(*made);
  for (const Group& g : made->groups) text += "\n" + g.source;
  const std::string path = std::string(KILN_SOURCE_DIR) + "/tests/golden/fusion/" + c.name + ".txt";
  if (std::getenv("KILN_BLESS")) std::ofstream(path) << text;
  std::stringstream want;
  want << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, want.str()) << "KILN_BLESS=1 accepts it";

  auto device = open_device("cpu");
  ASSERT_TRUE(device.ok());
  // Arguments only say dtype, alignment and integers: one small tensor per dtype stands for all.
  std::vector<Tensor> values;
  for (const Value& v : made->values) {
    auto t = Tensor::empty(*device, v.dtype, Shape{1024});
    ASSERT_TRUE(t.ok());
    values.push_back(*t);
  }
  std::string ptx;
  for (const Group& g : made->groups) {
    if (g.kind != GroupKind::kKernel) continue;
    SCOPED_TRACE(g.source);
    auto kernel = Kernel::from_source(g.source, g.name + ".py", g.kernel);
    ASSERT_TRUE(kernel.ok()) << render(kernel.error());
    LaunchOptions options;
    options.num_warps = g.num_warps;
    options.num_stages = g.num_stages;
    options.num_ctas = g.num_ctas;
    auto compiled = kernel->compile(arguments(g, values), options, c.machine.gpu() ? c.machine.target : "host");
    ASSERT_TRUE(compiled.ok()) << render(compiled.error());
    // A call anywhere makes ptxas wait for every wgmma.
    if (compiled->ptx.find("wgmma.mma_async") != std::string::npos) {
      EXPECT_EQ(compiled->ptx.find("call.uni"), std::string::npos);
    }
    ptx += compiled->ptx;
  }
  EXPECT_NE(ptx.find(c.in_ptx), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, Sources, ::testing::ValuesIn(cases()),
                         [](const auto& c) { return std::string(c.param.name); });

// Its text has constants before the function, and names others' decorators and modules in a string.
TEST(PlanScript, HasTheFunctionsOfCalls) {
  Writer w;
  ExprAttributes a;
  a.function = std::make_shared<ExprFunction>(
      ExprFunction{"twice",
                   "FACTOR = tl.constexpr(2)\n\n@triton.jit\ndef twice(x):\n    \"\"\"Not\n@triton.jit\ndef relu, nor "
                   "libdevice. or make_tensor_descriptor.\"\"\"\n    return FACTOR * x\n",
                   {"twice"}});
  const int x = w.tensor(kF32, {50, 7}, "x");
  w.graph.outputs = {w.op(ExprOp::kCall, {w.along(ExprOp::kSum, {w.op(ExprOp::kCall, {x}, a)}, {0})}, a)};
  auto made = plan(w.graph, {Variant::kUnfused, host_machine()});
  ASSERT_TRUE(made.ok()) << render(made.error());
  const std::string script = plan_script(*made);
  EXPECT_GT(made->groups.size(), 1u);
  auto count = [&](std::string_view text) {
    int n = 0;
    for (size_t at = script.find(text); at != std::string::npos; at = script.find(text, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("FACTOR = tl.constexpr(2)"), 1) << script;
  EXPECT_EQ(count("def twice(x):"), 1) << script;
  EXPECT_EQ(count("import libdevice"), 0) << script;
  EXPECT_EQ(count("set_allocator"), 0) << script;
}

TEST(PlanScript, TellsKernelsOfOneNameApart) {
  Writer w;
  w.graph.outputs = {w.along(ExprOp::kCumSum, {w.tensor(kF32, {16384, 16}, "x")}, {0})};
  auto made = plan(w.graph, {Variant::kFused, *usual_machine("sm_90a")});
  ASSERT_TRUE(made.ok()) << render(made.error());
  ASSERT_EQ(made->groups.size(), 2u) << "totals of parts, and the parts";
  EXPECT_EQ(made->groups[0].kernel, made->groups[1].kernel);
  const std::string script = plan_script(*made);
  for (const char* part : {"def cumsum_kernel(", "def cumsum_kernel1(", "    cumsum_kernel[(", "    cumsum_kernel1[("})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
}

// The text of an operand that is computed in the loop may count on a step lying within one element of a dimension.
TEST(Configurations, StepsOfWhatIsComputedDivideThosePlanned) {
  Writer w;
  ExprAttributes five;
  five.shape = {7, 32, 1, 58, 56};
  const int image = w.op(ExprOp::kReshape, {w.tensor(kF32, {7, 32, 58, 56}, "x")}, five);
  const int row = w.add(w.shaped(w.counts(58), {58, 1}), w.shaped(w.counts(3), {3, 1, 1}));
  const int windows = w.shaped(w.take({image, row}, {3}, true), {7, 96, 3248});
  w.graph.outputs = {w.op(ExprOp::kMatMul, {w.tensor(kF32, {128, 96}, "filters"), windows})};
  auto made = plan(w.graph, {Variant::kFused, hopper_machine()});
  ASSERT_TRUE(made.ok()) << render(made.error());
  ASSERT_EQ(made->groups.size(), 1u);
  const Group& g = made->groups[0];
  const auto planned = std::ranges::find(g.arguments, "BLOCK_K", &Argument::name);
  ASSERT_NE(planned, g.arguments.end());
  EXPECT_EQ(std::get<int64_t>(planned->value), 16);
  EXPECT_FALSE(g.configurations.empty());
  for (const Configuration& c : g.configurations)
    for (const auto& [name, value] : c.constants)
      if (name == "BLOCK_K") EXPECT_EQ(std::get<int64_t>(planned->value) % value, 0) << value;
}

TEST(PlanDrawing, NamesGroupsAndCauses) {
  Writer w;
  const int xw = w.op(ExprOp::kMatMul, {w.tensor(kF32, {64, 64}, "x"), w.tensor(kF32, {64, 64}, "w")});
  w.graph.outputs = {w.along(ExprOp::kSoftmax, {xw}, {-1})};
  auto made = plan(w.graph, {Variant::kFused, host_machine()});
  ASSERT_TRUE(made.ok()) << render(made.error());
  const std::string svg = plan_svg(*made);
  for (const char* part : {"<svg", "0 matmul", "1 softmax", "a reduction needs whole rows of the product", "</svg>"})
    EXPECT_NE(svg.find(part), std::string::npos) << part << "\n" << svg;
}

}  // namespace
}  // namespace kiln::fusion::testing
