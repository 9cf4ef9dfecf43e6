#include "repl/commands/compile_signature.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/parse/parser.h"

namespace kiln::repl {
namespace {

AssumedSignature assume(const std::string& text, const std::vector<std::string>& constexprs = {},
                        Evidence evidence = Evidence::kNamesToo) {
  auto module = parse::parse_module(SourceText::make("k.py", text));
  EXPECT_TRUE(module.ok()) << render(module.error());
  frontend::JitFunction f;
  f.module = *module;
  f.def = (*module)->function("k");
  EXPECT_NE(f.def, nullptr);
  std::vector<std::pair<std::string, frontend::Global>> given;
  for (const std::string& c : constexprs) given.push_back(*parse_constexpr(c));
  return assume_signature(f, given, evidence);
}

TEST(AssumedSignature, PointersAreWhatMemoryFunctionsGet) {
  auto a = assume(R"(
@triton.jit
def k(x, y, stride, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    row = x + tl.program_id(0) * stride
    ptrs = row + offs
    v = tl.load(ptrs, mask=offs < n)
    tl.store(y + offs, v)
)");
  EXPECT_EQ(a.signature, "*fp32:16, *fp32:16, i32:16, i32:16, constexpr");
  EXPECT_EQ(a.assumptions.size(), 5u);
  EXPECT_EQ(a.assumptions.back(), "BLOCK=1024");
  EXPECT_EQ(assume("@triton.jit\ndef k(BM: tl.constexpr, BN: tl.constexpr):\n    pass\n").assumptions,
            (std::vector<std::string>{"BM=32", "BN=32"}));
  // A tile of 1024 by 1024 is none that a host would launch.
  EXPECT_EQ(assume("@triton.jit\ndef k(B: tl.constexpr):\n    i = tl.arange(0, B)\n    j = i[:, None] + i[None, :]\n")
                .assumptions,
            (std::vector<std::string>{"B=32"}));
}

TEST(AssumedSignature, WhatAddressesMemoryIsAnInteger) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def element(x, offsets, i, stride):
    return tl.load(x + tl.load(offsets + i) * stride)
@triton.jit
def k(x, rows, starts, ends, packed, weights, alpha, out, BLOCK: tl.constexpr):
    row = tl.load(rows + tl.program_id(0)).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    base = x + row * BLOCK
    total = 0.0
    for i in range(tl.load(ends)):
        total += tl.sum(tl.load(base + cols) * tl.load(weights + cols))
    bits = tl.load(packed + cols)
    tl.store(out + cols, element(x, starts, 1, alpha) + total + ((bits >> 4) & 15))
)"));
  const auto functions = *frontend::jit_functions(module);
  EXPECT_EQ(assume_signature(*functions.back(), {}, Evidence::kNamesToo).signature,
            "*fp32:16, *i32:16, *i32:16, *i32:16, *i32:16, *fp32:16, i32:16, *fp32:16, constexpr");
}

TEST(AssumedSignature, WhatMasksIsATruth) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def put(out, i, value, keep):
    tl.store(out + i, value, keep)
@triton.jit
def k(x, keep, drop, bits, places, out, enabled, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < n
    mask = tl.load(keep + i, mask=inside) & inside
    value = tl.load(x + i, mask=mask & ~tl.load(drop + i)[:], other=0.0)
    odd = (tl.load(bits + i) & 1) == 1
    value = tl.gather(value, tl.load(places + i), 0)
    put(out, i, value, odd & enabled)
)"));
  const auto functions = *frontend::jit_functions(module);
  EXPECT_EQ(assume_signature(*functions.back(), {}, Evidence::kUse).signature,
            "*fp32:16, *i1:16, *i1:16, *i32:16, *i32:16, *fp32:16, i1, i32:16, constexpr");
}

TEST(AssumedSignature, OperandsOfDotHaveOneType) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def k(q_ptr, k_ptr, v_ptr, w_ptr, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    places = i[:, None] * BLOCK + i[None, :]
    values = tl.make_block_ptr(base=v_ptr, shape=(64, 64), strides=(64, 1), offsets=(0, 0),
                               block_shape=(BLOCK, BLOCK), order=(1, 0))
    p = tl.dot(tl.load(q_ptr + places), tl.load(k_ptr + places))
    p = tl.exp(p).to(tl.bfloat16)
    acc = tl.dot(p, tl.load(values).T)
    w = tl.load(w_ptr + places)
    w = tl.trans(w)
    acc += tl.dot(tl.trans(w), acc.to(tl.float16))
    tl.store(out + places, acc)
)"));
  const auto functions = *frontend::jit_functions(module);
  EXPECT_EQ(assume_signature(*functions.back(), {}, Evidence::kUse).signature,
            "*fp32:16, *fp32:16, *bf16:16, *fp16:16, *fp32:16, constexpr");
}

TEST(AssumedSignature, TypesGoFromProductToProduct) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def step(p, tile):
    return tl.dot(p.to(tl.float16), tile)
@triton.jit
def k(q_ptr, k_ptr, v_ptr, do_ptr, stats, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    places = i[:, None] * BLOCK + i[None, :]
    q = tl.load(q_ptr + places)
    v = tl.load(v_ptr + places)
    p = tl.exp(tl.dot(q, tl.load(k_ptr + places)) - tl.load(stats + i))
    do = tl.load(do_ptr + places)
    acc = step(p, do)
    ds = (p * tl.dot(do, tl.trans(v))).to(tl.float16)
    tl.store(out + places, acc + tl.dot(ds, q))
)"));
  const auto functions = *frontend::jit_functions(module);
  EXPECT_EQ(assume_signature(*functions.back(), {}, Evidence::kUse).signature,
            "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, constexpr");
}

TEST(AssumedSignature, SumsInInt32AreOfInt8) {
  const auto a = assume(R"(
@triton.jit
def k(a, b, c, d, e, f, g, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.int32)
    acc += tl.dot(tl.load(a + i), tl.load(b + i))
    acc = tl.dot(tl.load(c + i), tl.load(d + i).T, acc)
    x = tl.dot(tl.load(e + i), tl.load(f + i), out_dtype=tl.int32)
    y = tl.dot(x.to(tl.int8), tl.load(g + i))
    tl.store(out + i, acc + x + y)
)");
  EXPECT_EQ(a.signature, "*i8:16, *i8:16, *i8:16, *i8:16, *i8:16, *i8:16, *i8:16, *fp32:16, constexpr");
}

TEST(AssumedSignature, WhatAHelperReturnsMayBeAnInteger) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def rows_of(pid, bounds, experts, scales):
    start = tl.load(bounds + pid)
    return start, tl.load(scales + pid), tl.load(experts + pid)
@triton.jit
def first(p):
    return tl.load(p)
@triton.jit
def k(x, bounds, experts, scales, ends, out):
    start, scale, expert = rows_of(tl.program_id(0), bounds, experts, scales)
    end = first(ends)
    tl.store(out + end, tl.load(x + start + expert) * scale)
)"));
  const auto functions = *frontend::jit_functions(module);
  EXPECT_EQ(assume_signature(*functions.back(), {}, Evidence::kUse).signature,
            "*fp32:16, *i32:16, *i32:16, *fp32:16, *i32:16, *fp32:16");
}

TEST(AssumedSignature, AddressesInMemoryAndCounters) {
  auto module = parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def move(src, offset, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(src + offset + i, tl.load(src + i))

@triton.jit
def k(table, offsets, masks, counts, bins, ends, values, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    row = tl.load(table + pid)
    base = row.to(tl.pointer_type(tl.float32))
    first, last = tl.load(offsets + pid), tl.load(ends + pid)
    move(base, tl.load(offsets + pid), BLOCK)
    tl.atomic_or(masks + pid, 1 << pid)
    total = 0
    for i in range(8):
        count = tl.load(counts + i)
        total = total + count
    place = tl.program_id(1)
    if place > 0:
        place -= tl.load(bins + place - 1)
    tl.store(out + total + last, tl.load(values + first))
)"));
  const auto functions = *frontend::jit_functions(*module);
  EXPECT_EQ(assume_signature(*functions.back(), {}, Evidence::kNamesToo).signature,
            "*i64:16, *i32:16, *i32:16, *i32:16, *i32:16, *i32:16, *fp32:16, *fp32:16, constexpr");
}

TEST(AssumedSignature, NamesDefaultsAndAnnotations) {
  auto a = assume(R"(
@triton.jit
def k(a_ptr, USE_X: tl.constexpr, n: tl.int64, eps, count, slope=0.5, flag=True, extra=None, HAS_BIAS: tl.constexpr = True, kind: "tl.constexpr" = "a"):
    pass
)");
  EXPECT_EQ(a.signature, "*fp32:16, constexpr, i64, fp32, i32:16, fp32, i1, constexpr, constexpr, constexpr");
  EXPECT_NE(std::find(a.assumptions.begin(), a.assumptions.end(), "HAS_BIAS=True"), a.assumptions.end());
  EXPECT_NE(std::find(a.assumptions.begin(), a.assumptions.end(), "USE_X=False"), a.assumptions.end());
  EXPECT_NE(std::find(a.assumptions.begin(), a.assumptions.end(), "extra=None"), a.assumptions.end());
}

TEST(AssumedSignature, TheFirstConfigGivesAutotunedValues) {
  auto a = assume(R"(
@triton.autotune(configs=[triton.Config({'BM': 64, "BN": 32}, num_warps=8), triton.Config({'BM': 16, 'BN': 16})], key=['n'])
@triton.jit
def k(n, BM: tl.constexpr, BN: tl.constexpr):
    pass
)");
  EXPECT_EQ(a.assumptions, (std::vector<std::string>{"n: i32:16", "BM=64", "BN=32"}));
}

TEST(AssumedSignature, ConfigsMayBeNamedMadeAndLooped) {
  EXPECT_EQ(assume(R"(
CONFIGS = [triton.Config(dict(BM=128, T=tl.float16), num_warps=4)]
@triton.autotune(CONFIGS, key=[])
@triton.jit
def k(BM: tl.constexpr, T: tl.constexpr):
    pass
)")
                .assumptions,
            (std::vector<std::string>{"BM=128", "T=tl.float16"}));
  EXPECT_EQ(assume(R"(
def configs():
    out = []
    for bm, shift in [(64, -1), (128, 2)]:
        for bn in (16, 32):
            out.append(triton.Config(kwargs={"BM": bm, "BN": bn, "SHIFT": shift}))
    return out
@triton.autotune(configs=configs(), key=[])
@triton.jit
def k(BM: tl.constexpr, BN: tl.constexpr, SHIFT: tl.constexpr):
    pass
)")
                .assumptions,
            (std::vector<std::string>{"BM=64", "BN=16", "SHIFT=-1"}));
  EXPECT_EQ(assume(R"(
@triton.autotune(configs=[triton.Config({"BM": b}) for b in [256, 512]], key=[])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BM"] == 0, "BIASED": lambda args: args["b"] is not None})
@triton.jit
def k(b, n, BM: tl.constexpr, EVEN: tl.constexpr, BIASED: tl.constexpr):
    pass
)")
                .assumptions,
            (std::vector<std::string>{"b: i32:16", "n: i32:16", "BM=256", "EVEN=False", "BIASED=True"}));
}

TEST(AssumedSignature, UseTellsWhatAConstexprIs) {
  auto a = assume(R"(
@triton.jit
def k(x_ptr, T: tl.constexpr, ACC: tl.constexpr, OUT: tl.constexpr, SUM: tl.constexpr, SCALE: tl.constexpr,
      CAUSAL: tl.constexpr, ACT: tl.constexpr, STAGE: tl.constexpr, EVICT: tl.constexpr, AXIS: tl.constexpr,
      FLAG: tl.constexpr, ANY: tl.constexpr, BLOCK: tl.constexpr):
    t: tl.constexpr = T
    flag = FLAG.value
    x = tl.load(x_ptr + tl.arange(0, BLOCK), eviction_policy=EVICT).to(t)
    acc = tl.zeros((BLOCK,), dtype=ACC)
    sum_type = tl.float32 if flag else SUM
    acc += tl.zeros((BLOCK,), dtype=sum_type) * tl.cast(SCALE, tl.float32)
    if OUT == tl.bfloat16 and not CAUSAL:
        acc += tl.sum(x, axis=AXIS)
    if ACT == "relu":
        acc = tl.maximum(acc, 0)
    elif ACT == "gelu":
        acc = acc * 2
    if STAGE & 2:
        acc = acc if flag else x
    if ANY is None:
        acc = x
    tl.store(x_ptr, acc)
)");
  EXPECT_EQ(a.assumptions,
            (std::vector<std::string>{"x_ptr: *fp32:16", "T=tl.float32", "ACC=tl.float32", "OUT=tl.bfloat16",
                                      "SUM=tl.float32", "SCALE=32", "CAUSAL=False", "ACT='relu'", "STAGE=1", "EVICT=''",
                                      "AXIS=0", "FLAG=False", "ANY=None", "BLOCK=32"}));
}

TEST(AssumedSignature, HelpersTellToo) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def cast(x, TO: tl.constexpr, AGAIN: tl.constexpr):
    if AGAIN:
        x = cast(x, TO, AGAIN)
    return x.to(TO)
@triton.jit
def k(x_ptr, T: tl.constexpr, F: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, cast(tl.load(x_ptr + i), T, AGAIN=F))
)"));
  const auto functions = *frontend::jit_functions(module);
  EXPECT_EQ(assume_signature(*functions.back(), {}, Evidence::kUse).assumptions,
            (std::vector<std::string>{"x_ptr: *fp32:16", "T=tl.float32", "F=False", "BLOCK=1024"}));
}

TEST(AssumedSignature, NamesAreNoEvidenceWhereUseMustTell) {
  EXPECT_EQ(assume("@triton.jit\ndef k(a_ptr, scale, slope=0.5):\n    pass\n", {}, Evidence::kUse).signature,
            "i32:16, i32:16, fp32");
}

TEST(AssumedSignature, PointersAreHandedToHelpers) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def put(where, value):
    tl.store(where, value)
    if value > 3:
        put(where + 1, value)
@triton.jit
def k(x, y, z, n):
    row = x + n
    d = tl.make_tensor_descriptor(base=y, shape=[n], strides=[1], block_shape=[16])
    put(row, 1)
    put(value=n, where=z)
)"));
  const auto functions = *frontend::jit_functions(module);
  EXPECT_EQ(assume_signature(*functions.back(), {}, Evidence::kUse).signature, "*fp32:16, *fp32:16, *fp32:16, i32:16");
}

TEST(AssumedSignature, WhatIsGivenIsNotAssumed) {
  auto a = assume("@triton.jit\ndef k(n, BLOCK: tl.constexpr):\n    pass\n", {"BLOCK=64", "n=1"});
  EXPECT_EQ(a.signature, "constexpr, constexpr");
  EXPECT_TRUE(a.assumptions.empty());
}

TEST(AssumedSignature, OperandsOfScaledProductsAreBytes) {
  auto a = assume(R"(
@triton.jit
def k(a_ptr, a_scale, b_ptr, b_scale, c_ptr, out, FORMAT: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    i = tl.arange(0, BM)[:, None] * BK + tl.arange(0, BK)[None, :]
    a = tl.load(a_ptr + i)
    a_pointers = a_scale + tl.arange(0, BM)[:, None]
    c = tl.load(c_ptr + i).T
    acc = tl.dot_scaled(a, tl.load(a_pointers), FORMAT, tl.load(b_ptr + i).T, tl.load(b_scale + i), "e2m1")
    acc = tl.dot_scaled(a, tl.load(a_pointers), "e5m2", rhs=c, rhs_scale=None, rhs_format="bf16", acc=acc)
    tl.store(out + i, acc)
)");
  EXPECT_EQ(a.signature, "*u8:16, *u8:16, *u8:16, *u8:16, *bf16:16, *fp32:16, constexpr, constexpr, constexpr");
  EXPECT_EQ(a.assumptions[6], "FORMAT='e4m3'");
}

TEST(AssumedSignature, WhatNumbersIndexIsATuple) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def second(pair):
    return pair[1]
@triton.jit
def k(x_ptrs, strides, sizes, one, plain, SHAPE: tl.constexpr, AXES: tl.constexpr = (0, 1)):
    m, n, p = sizes
    i = tl.arange(0, 16)
    for j in tl.static_range(2):
        tl.store(x_ptrs[j] + i * strides[0] + one[0], second(strides) + m + n + p)
    tl.store(plain + i[None, :], i[:, None] + SHAPE[1])
)"));
  const auto functions = *frontend::jit_functions(module);
  const AssumedSignature a = assume_signature(*functions.back(), {}, Evidence::kUse);
  EXPECT_EQ(a.signature,
            "(*fp32:16, *fp32:16), (i32:16, i32:16), (i32:16, i32:16, i32:16), (i32:16,), *fp32:16, constexpr, "
            "constexpr");
  EXPECT_EQ(a.assumptions[5], "SHAPE=(32, 32)");
  EXPECT_EQ(a.assumptions[6], "AXES=(0, 1)");
}

TEST(AssumedSignature, DescriptorsAndTheirStrides) {
  auto a = assume(R"(
@triton.jit
def k(a_desc, b_desc, row_desc, c_ptr, m, n, stride_m, stride_n, last: tl.constexpr, seeds, out, seeds2, rows, lds, BM: tl.constexpr, BN: tl.constexpr):
    tl.static_assert(row_desc.block_shape[0] == out.block_shape[1])
    a = a_desc.load([0, 0])
    acc = tl.dot(a, b_desc.load((0, m)).to(tl.bfloat16).T)
    row_desc.store([m], tl.sum(acc, 0) + tl.rand(tl.load(seeds), n))
    c.scatter(a_desc.gather(tl.load(seeds2), 0), tl.load(rows), 0)
    c = tl.make_tensor_descriptor(c_ptr, shape=[m, n], strides=[stride_m, stride_n], block_shape=[BM, BN])
    d = tl.make_tensor_descriptor(c_ptr, [m, n], (stride_m, last), [BM, BN])
    ld = tl.load(lds + 1)
    e = tl.make_tensor_descriptor(c_ptr, shape=[m, n], strides=[ld, 1], block_shape=[BM, BN])
    c.store([0, 0], acc + d.load([0, 0]))
    c_ptr = c
    c_ptr.store([0, 0], acc)
)");
  EXPECT_EQ(a.signature,
            "tensordesc<bf16[32, 32]>, tensordesc<fp32[32, 32]>, tensordesc<fp32[32]>, *fp32:16, i32:16, i32:16, "
            "i32:16, constexpr, constexpr, *i32:16, tensordesc<fp32[32, 32]>, *i32:16, *i32:16, *i32:16, constexpr, "
            "constexpr");
  EXPECT_EQ(a.assumptions[7], "stride_n=1");
  EXPECT_EQ(a.assumptions[8], "last=1");
}

TEST(AssumedSignature, BlocksOfDescriptorsAreThoseOfTheHost) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
@triton.jit
def tile_of(desc, i, j, SIDE: tl.constexpr):
    return desc.load([i * SIDE, j])
@triton.jit
def k(a, b, c, d, row, unknown, vector, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * M
    x = tl.dot(a.load([i, 0]), b.load([0, i]).T) + tile_of(d, tl.program_id(1), 0, N)
    for j in range(0, 1024, K):
        x += row.load([tl.multiple_of(i, 16), j]) + unknown.load([0, 0]) + vector.load([0])
    c.store([i, i], x)
def hook(nargs):
    nargs["c"].block_shape = [nargs["M"], nargs["N"] // 2]
def launch(a, b):
    half = torch.empty(8, 8, dtype=torch.float16)
    a_desc = TensorDescriptor.from_tensor(half, [M, K])
    k[(1, )](a_desc, TensorDescriptor(b, b.shape, b.stride(), block_shape=[64, 16]), M=128, N=64, K=16)
)"));
  const auto functions = *frontend::jit_functions(module);
  const AssumedSignature a = assume_signature(*functions.back(), {}, Evidence::kUse);
  EXPECT_EQ(a.signature,
            "tensordesc<fp16[128, 16]>, tensordesc<fp32[64, 16]>, tensordesc<fp32[128, 32]>, "
            "tensordesc<fp32[64, 32]>, tensordesc<fp32[128, 16]>, tensordesc<fp32[32, 32]>, tensordesc<fp32[1024]>, "
            "constexpr, constexpr, constexpr");
}

TEST(AssumedSignature, SidesOfTilesInHelpers) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def square(x, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(x + i[:, None] + i[None, :], 1.0)
@triton.jit
def k(x, N: tl.constexpr):
    square(x, N)
)"));
  const auto functions = *frontend::jit_functions(module);
  EXPECT_EQ(assume_signature(*functions.back(), {}, Evidence::kUse).assumptions.back(), "N=32");
}

TEST(AssumedSignature, ShiftsAndFlagsInMasks) {
  const auto a = assume(R"(
@triton.jit
def k(x, BITS: tl.constexpr, SHIFT: tl.constexpr, HAS_V: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = (i < 8) & HAS_V
    tl.store(x + i, (tl.load(x + i, mask=mask) >> SHIFT) & ((1 << BITS) - 1))
)");
  EXPECT_EQ(a.assumptions[1], "BITS=4");
  EXPECT_EQ(a.assumptions[2], "SHIFT=4");
  EXPECT_EQ(a.assumptions[3], "HAS_V=False");
}

TEST(AssumedSignature, DefaultsAreFunctionsToo) {
  const auto module = *parse::parse_module(SourceText::make("k.py", R"(
import triton
import triton.language as tl
@triton.jit
def twice(x):
    return x + x
@triton.jit
def k(x, ACT: tl.constexpr = tl.sigmoid, PRE: tl.constexpr = twice, T: tl.constexpr = tl.float16):
    tl.store(x, ACT(PRE(tl.load(x))).to(T))
)"));
  const auto functions = *frontend::jit_functions(module);
  EXPECT_EQ(assume_signature(*functions.back(), {}, Evidence::kUse).assumptions,
            (std::vector<std::string>{"x: *fp32:16", "ACT=tl.sigmoid", "PRE=twice", "T=tl.float16"}));
}

TEST(ParseConstexpr, TuplesFunctionsAndInfinities) {
  auto items = [](const char* text) {
    return std::get<std::shared_ptr<const frontend::GlobalTuple>>(parse_constexpr(text)->second)->items;
  };
  ASSERT_EQ(items("S=(4, tl.float16, (1,))").size(), 3u);
  EXPECT_EQ(items("S=[4, 'x']")[0], frontend::Global(ast::Constant(ast::Int{4})));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("L=-inf")->second), ast::Constant(-HUGE_VAL));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("L=float('-inf')")->second), ast::Constant(-HUGE_VAL));
  EXPECT_TRUE(std::isnan(std::get<double>(std::get<ast::Constant>(parse_constexpr("L=nan")->second))));
  EXPECT_EQ(std::get<frontend::ModulePath>(parse_constexpr("F=tl.sigmoid")->second).path, "triton.language.sigmoid");
  EXPECT_EQ(std::get<frontend::ModulePath>(parse_constexpr("F=libdevice.tanh")->second).path,
            "triton.language.extra.libdevice.tanh");
  const auto module = *parse::parse_module(SourceText::make(
      "k.py", "import triton\n@triton.jit\ndef f(x):\n    return x\n@triton.jit\ndef k(x):\n    pass\n"));
  const auto functions = *frontend::jit_functions(module);
  const auto named = parse_constexpr("F=f", functions.back().get());
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(std::get<std::shared_ptr<const frontend::JitFunction>>(named->second)->def->name, "f");
  for (const char* bad : {"F=tl.no_such", "F=float('x')", "F=(1, foo)", "F=tl", "F=-'x'"})
    EXPECT_FALSE(parse_constexpr(bad).ok()) << bad;
}

TEST(ParseConstexpr, Values) {
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B=1024")->second), ast::Constant(ast::Int{1024}));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B=-3")->second), ast::Constant(ast::Int{-3}));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B=True")->second), ast::Constant(true));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B=0.5")->second), ast::Constant(0.5));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B='x'")->second), ast::Constant(std::string("x")));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B=None")->second), ast::Constant(ast::None{}));
  EXPECT_EQ(std::get<DType>(parse_constexpr("T=tl.float16")->second), DType::kF16);
  EXPECT_EQ(std::get<DType>(parse_constexpr("T=bfloat16")->second), DType::kBF16);
  for (const char* bad : {"B", "=3", "B=", "B=x + 1", "B=foo"}) EXPECT_FALSE(parse_constexpr(bad).ok()) << bad;
}

TEST(CalledNames, AreThoseOfPlainCalls) {
  auto module = parse::parse_module(
      SourceText::make("k.py", "def k(x):\n    if helper(x):\n        return tl.sum(other(x) + 1)\n"));
  ASSERT_TRUE(module.ok());
  EXPECT_EQ(called_names(*(*module)->function("k")), (std::vector<std::string>{"helper", "other"}));
}

}  // namespace
}  // namespace kiln::repl
