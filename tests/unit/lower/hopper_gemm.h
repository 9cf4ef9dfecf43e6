// IR text of the distributed stage, written by hand: a persistent, warp-specialised GEMM whose loads go through TMA and
// a ring of mbarriers, whose products are wgmma, and whose results leave by stmatrix and TMA. One text for tests of the
// lowering, of machine code and of the GPU.
#pragma once
#include <string>

#include "compiler/layout/algebra.h"
#include "compiler/layout/tensor_core.h"
#include "support/diag.h"

namespace kiln::testing_support {

struct HopperGemm {
  int32_t m = 128, n = 128, k = 64;  // of one tile
  int stages = 3, num_warps = 8;
  DType operand = DType::kF16, result = DType::kF16;
  DType accumulator = DType::kF32;
  bool a_transposed = false;  // a is [K, M] in memory
  bool b_transposed = true;   // b is [N, K] in memory
  bool a_in_registers = false;
};

/// A layout as the IR's text names it.
inline std::string layout_text(const layout::LinearLayout& l) {
  auto list = [](auto&& items, std::string_view open, std::string_view close, auto&& print) {
    std::string s(open);
    bool first = true;
    for (const auto& item : items) s += (std::exchange(first, false) ? "" : ", ") + print(item);
    return s + std::string(close);
  };
  auto number = [](int32_t n) { return std::to_string(n); };
  std::string groups;
  constexpr std::pair<layout::In, const char*> kGroups[] = {{layout::In::kRegister, "register"},
                                                            {layout::In::kLane, "lane"},
                                                            {layout::In::kWarp, "warp"},
                                                            {layout::In::kOffset, "offset"}};
  for (const auto& [in, name] : kGroups)
    if (l.bits(in))
      groups += (groups.empty() ? "" : ", ") + std::string(name) + " = " +
                list(l.bases(in), "[", "]", [&](const layout::Coord& c) {
                  return list(std::span(c.at.data(), static_cast<size_t>(l.rank())), "(", ")", number);
                });
  return list(l.shape(), "[", "]", number) + " {" + groups + "}";
}

/// Parameters: a, b, c (pointers), M, N, K (i32), lda, ldb, ldc (i64, in elements). The grid is any number of programs.
inline std::string hopper_gemm_ir(const HopperGemm& g) {
  using layout::swizzled, layout::widest_swizzle;
  const int bits_in = bits(g.operand), bits_out = bits(g.result);
  const std::vector<int32_t> a_shape = g.a_transposed ? std::vector{g.k, g.m} : std::vector{g.m, g.k},
                             b_shape = g.b_transposed ? std::vector{g.n, g.k} : std::vector{g.k, g.n},
                             c_shape = {g.m, g.n};
  const std::vector<int> rows{1, 0};
  auto in_shared = [&](const std::vector<int32_t>& shape, int element_bits) {
    return swizzled(shape, element_bits, widest_swizzle(shape[1], element_bits), rows);
  };
  const std::vector<int64_t> turn{1, 0};
  const layout::LinearLayout a = in_shared(a_shape, bits_in), b = in_shared(b_shape, bits_in),
                             c = in_shared(c_shape, bits_out), acc = layout::wgmma_accumulator(c_shape, g.num_warps),
                             at = layout::transpose(a, turn), bt = layout::transpose(b, turn);
  // a in registers: the fragment of the instruction, repeated along k and then along m.
  layout::LinearLayout ar(std::vector<int32_t>{g.m, g.k});
  {
    const int32_t packed = 32 / bits_in;
    auto push = [&](layout::In in, int32_t row, int32_t column) { ar.push(in, layout::Coord{{row, column}}); };
    for (int32_t i = 1; i < packed; i *= 2) push(layout::In::kRegister, 0, i);
    push(layout::In::kRegister, 8, 0);
    for (int32_t i = 4 * packed; i < g.k; i *= 2) push(layout::In::kRegister, 0, i);
    for (const layout::Coord& basis : acc.bases(layout::In::kRegister))
      if (basis[0] >= 64) push(layout::In::kRegister, basis[0], 0);
    push(layout::In::kLane, 0, packed), push(layout::In::kLane, 0, 2 * packed);
    for (int32_t i = 1; i < 8; i *= 2) push(layout::In::kLane, i, 0);
    for (const layout::Coord& basis : acc.bases(layout::In::kWarp)) push(layout::In::kWarp, basis[0], 0);
  }
  const int64_t a_bytes = int64_t{g.m} * g.k * size_of(g.operand), b_bytes = int64_t{g.n} * g.k * size_of(g.operand),
                c_bytes = int64_t{g.m} * g.n * size_of(g.result);
  const int64_t b_at = g.stages * a_bytes, c_at = b_at + g.stages * b_bytes, full_at = c_at + c_bytes,
                empty_at = full_at + 8 * g.stages;
  auto tile = [](DType t, const std::vector<int32_t>& shape) {
    return fmt::format("{}[{}, {}]", name(t), shape[0], shape[1]);
  };
  std::string text;
  const layout::LinearLayout* layouts[] = {&a, &b, &c, &acc, &at, &bt, &ar};
  for (size_t i = 0; i < std::size(layouts); ++i) text += fmt::format("layout L{} = {}\n", i, layout_text(*layouts[i]));
  text += fmt::format(
      "kernel @gemm(%a: *{0} {{divisibility = 16}}, %b: *{0} {{divisibility = 16}}, %c: *{1} {{divisibility = 16}}, "
      "%M: i32, %N: i32, %K: i32, %lda: i64 {{divisibility = 16}}, %ldb: i64 {{divisibility = 16}}, "
      "%ldc: i64 {{divisibility = 16}}) attributes {{num_warps = {2}, num_stages = {3}, num_ctas = 1, "
      "stage = \"distributed\", shared_bytes = {4}}} {{\n",
      name(g.operand), name(g.result), g.num_warps, g.stages, empty_at + 8 * g.stages);
  text += R"(  %zero = constant 0 : i32
  %one = constant 1 : i32
  %unit = constant 1 : i64
)";
  text += fmt::format("  %stages = constant {} : i32\n", g.stages);
  for (auto [name, size, over] : {std::tuple("m", g.m, "M"), std::tuple("n", g.n, "N"), std::tuple("k", g.k, "K")})
    text += fmt::format(
        "  %b{0} = constant {1} : i32\n  %b{0}1 = constant {2} : i32\n  %p{0} = add %{3}, %b{0}1 : i32\n"
        "  %t{0} = div %p{0}, %b{0} : i32\n",
        name, size, size - 1, over);
  text += fmt::format("  %da = make_descriptor %a, {}, %lda, %unit : desc {}\n", g.a_transposed ? "%K, %M" : "%M, %K",
                      tile(g.operand, a_shape));
  text += fmt::format("  %db = make_descriptor %b, {}, %ldb, %unit : desc {}\n", g.b_transposed ? "%N, %K" : "%K, %N",
                      tile(g.operand, b_shape));
  text += fmt::format("  %dc = make_descriptor %c, %M, %N, %ldc, %unit : desc {}\n", tile(g.result, c_shape));
  text += fmt::format(
      "  %as = shared_alloc {{shared_offset = 0}} : shared {0}{{L0}} x {3}\n"
      "  %bs = shared_alloc {{shared_offset = {4}}} : shared {1}{{L1}} x {3}\n"
      "  %cs = shared_alloc {{shared_offset = {5}}} : shared {2}{{L2}}\n"
      "  %full = shared_alloc {{shared_offset = {6}}} : barrier x {3}\n"
      "  %empty = shared_alloc {{shared_offset = {7}}} : barrier x {3}\n",
      tile(g.operand, a_shape), tile(g.operand, b_shape), tile(g.result, c_shape), g.stages, b_at, c_at, full_at,
      empty_at);
  text += fmt::format("  mbarrier_init %full {{count = 1}}\n  mbarrier_init %empty {{count = {}}}\n", g.num_warps);
  text += R"(  barrier
  %tiles = mul %tm, %tn : i32
  %first = program_id {axis = 0} : i32
  %programs = num_programs {axis = 0} : i32
  warp_specialize {warps = 4} () {
)";
  text += fmt::format("    %nothing = constant 0 : {}{{L3}}\n", tile(g.accumulator, c_shape));
  text +=
      R"(    %cst, %cph = for %t = %first to %tiles step %programs iter (%st0 = %zero, %ph0 = %zero) : i32 -> (i32, i32) {
      %q = div %t, %tn : i32
      %r = rem %t, %tn : i32
      %row = mul %q, %bm : i32
      %column = mul %r, %bn : i32
)";
  const std::string acc_type = tile(g.accumulator, c_shape) + "{L3}";
  text += fmt::format(
      "      %sum, %st1, %ph1 = for %i = %zero to %tk step %one iter (%acc = %nothing, %st = %st0, %ph = %ph0) : i32 "
      "-> "
      "({}, i32, i32) {{\n        %f = shared_view %full, %st : barrier\n        mbarrier_wait %f, %ph\n"
      "        %av = shared_view %as, %st : shared {}{{L0}}\n        %bv = shared_view %bs, %st : shared {}{{L1}}\n",
      acc_type, tile(g.operand, a_shape), tile(g.operand, b_shape));
  std::string am = "%av", bm = "%bv";
  if (g.a_transposed) {
    text += fmt::format("        %at = shared_trans %av {{order = [1, 0]}} : shared {}{{L4}}\n",
                        tile(g.operand, {g.m, g.k}));
    am = "%at";
  }
  if (g.b_transposed) {
    text += fmt::format("        %bt = shared_trans %bv {{order = [1, 0]}} : shared {}{{L5}}\n",
                        tile(g.operand, {g.k, g.n}));
    bm = "%bt";
  }
  if (g.a_in_registers) {
    text += fmt::format("        %ar = shared_load {} : {}{{L6}}\n", am, tile(g.operand, {g.m, g.k}));
    am = "%ar";
  }
  text += fmt::format(
      "        %going = wgmma {0}, {1}, %acc : {2}\n        %next = wgmma_wait %going {{count = 0}} : {2}\n", am, bm,
      acc_type);
  text += R"(        %e = shared_view %empty, %st : barrier
        mbarrier_arrive %e
        %st2 = add %st, %one : i32
        %wrap = cmp %st2, %stages {predicate = "eq"} : i1
        %st3 = select %wrap, %zero, %st2 : i32
        %flip = cast %wrap : i32
        %ph3 = xor %ph, %flip : i32
        yield %next, %st3, %ph3
      }
)";
  if (g.result == g.accumulator)
    text += "      tma_store_wait {count = 0}\n      barrier\n      shared_store %cs, %sum\n";
  else
    text += fmt::format(
        "      %half = cast %sum : {}{{L3}}\n      tma_store_wait {{count = 0}}\n      barrier\n"
        "      shared_store %cs, %half\n",
        tile(g.result, c_shape));
  text += R"(      fence_async
      barrier
      tma_store %dc, %cs, %row, %column
      yield %st1, %ph1
    }
    tma_store_wait {count = 0}
    yield
  } () {
    %pst, %pph = for %t_1 = %first to %tiles step %programs iter (%st0_1 = %zero, %ph0_1 = %one) : i32 -> (i32, i32) {
      %q_1 = div %t_1, %tn : i32
      %r_1 = rem %t_1, %tn : i32
      %row_1 = mul %q_1, %bm : i32
      %column_1 = mul %r_1, %bn : i32
      %st1_1, %ph1_1 = for %i_1 = %zero to %tk step %one iter (%st_1 = %st0_1, %ph_1 = %ph0_1) : i32 -> (i32, i32) {
        %e_1 = shared_view %empty, %st_1 : barrier
        mbarrier_wait %e_1, %ph_1
        %f_1 = shared_view %full, %st_1 : barrier
)";
  text += fmt::format("        mbarrier_expect %f_1 {{bytes = {}}}\n", a_bytes + b_bytes);
  text += fmt::format(
      "        %depth = mul %i_1, %bk : i32\n        %av_1 = shared_view %as, %st_1 : shared {}{{L0}}\n"
      "        %bv_1 = shared_view %bs, %st_1 : shared {}{{L1}}\n        tma_load %av_1, %f_1, %da, {}\n"
      "        tma_load %bv_1, %f_1, %db, {}\n",
      tile(g.operand, a_shape), tile(g.operand, b_shape), g.a_transposed ? "%depth, %row_1" : "%row_1, %depth",
      g.b_transposed ? "%column_1, %depth" : "%depth, %column_1");
  text += R"(        %st2_1 = add %st_1, %one : i32
        %wrap_1 = cmp %st2_1, %stages {predicate = "eq"} : i1
        %st3_1 = select %wrap_1, %zero, %st2_1 : i32
        %flip_1 = cast %wrap_1 : i32
        %ph3_1 = xor %ph_1, %flip_1 : i32
        yield %st3_1, %ph3_1
      }
      yield %st1_1, %ph1_1
    }
    yield
  }
  return
}
)";
  return text;
}

}  // namespace kiln::testing_support
