#include "compiler/analysis/axis_info.h"

#include <gtest/gtest.h>

#include "support/source.h"

namespace kiln::analysis {
namespace {

using ir::Module;
using ir::Value;

struct Analysed {
  std::unique_ptr<Module> module;
  std::unique_ptr<AxisAnalysis> axis;

  const Value* value(std::string_view name) const {
    const Value* found = nullptr;
    auto look = [&](const Value* v) {
      if (v->name == name) found = v;
    };
    for (const Value* v : module->body()->args) look(v);
    walk(module->body(), [&](ir::Op* op) {
      for (const Value* v : op->results) look(v);
      for (const ir::Block* b : op->regions)
        // Loops' arguments have no op of their own.
        for (const Value* v : b->args) look(v);
    });
    EXPECT_NE(found, nullptr) << name;
    return found;
  }
  const AxisInfo& operator[](std::string_view name) const { return axis->of(value(name)); }
};

Analysed analyse(const std::string& body, const std::string& params =
                                              "%x: *f32 {divisibility = 16}, %y: *bf16 {divisibility = 16}, "
                                              "%n: i32 {divisibility = 16}, %k: i32") {
  auto text = SourceText::make("test.ir", "kernel @t(" + params +
                                              ") attributes {num_warps = 4, num_stages = 3, num_ctas = 1} {\n" + body +
                                              "  return\n}\n");
  auto m = ir::parse_module(text);
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : render(m.error()));
  Status ok = ir::verify(**m);
  EXPECT_TRUE(ok.ok()) << (ok.ok() ? "" : render(ok.error()));
  Analysed a{std::move(*m), nullptr};
  a.axis = std::make_unique<AxisAnalysis>(*a.module);
  return a;
}

constexpr char kOffsets[] =
    "  %pid = program_id {axis = 0} : i32\n"
    "  %block = constant 1024 : i32\n"
    "  %first = mul %pid, %block : i32\n"
    "  %firsts = splat %first : i32[1024]\n"
    "  %lanes = arange {start = 0, end = 1024} : i32[1024]\n"
    "  %offsets = add %firsts, %lanes : i32[1024]\n"
    "  %ns = splat %n : i32[1024]\n"
    "  %ks = splat %k : i32[1024]\n"
    "  %mask = cmp %offsets, %ns {predicate = \"lt\"} : i1[1024]\n"
    "  %odd_mask = cmp %offsets, %ks {predicate = \"lt\"} : i1[1024]\n"
    "  %xs = splat %x : *f32[1024]\n"
    "  %ys = splat %y : *bf16[1024]\n"
    "  %xp = addptr %xs, %offsets : *f32[1024]\n"
    "  %yp = addptr %ys, %offsets : *bf16[1024]\n";

/// What a kernel of the distributed stage computes beside its producer has the same facts.
TEST(AxisInfo, BesideAProducer) {
  std::string layout =
                  "layout L0 = [1024] {register = [(1), (2), (4)], lane = [(8), (16), (32), (64), (128)], "
                  "warp = [(256), (512)]}\n",
              body = kOffsets;
  for (const std::string type : {"i32", "i1", "*f32", "*bf16"})
    // Each tile type of the text gets the layout, as the distributed stage has it.
    for (size_t at = 0; (at = body.find(": " + type + "[1024]\n", at)) != std::string::npos;)
      body.insert(at += type.size() + 8, "{L0}");
  auto m = ir::parse_module(SourceText::make(
      "test.ir",
      layout + "kernel @t(%x: *f32 {divisibility = 16}, %y: *bf16, %n: i32 {divisibility = 16}, %k: i32) " +
          "attributes {num_warps = 4, num_stages = 3, num_ctas = 1, stage = \"distributed\", shared_bytes = 0} " +
          "{\n  warp_specialize {warps = 4} () {\n" + body + "    yield\n  } () {\n    yield\n  }\n  return\n}\n"));
  ASSERT_TRUE(m.ok()) << render(m.error());
  const Status valid = ir::verify(**m);
  ASSERT_TRUE(valid.ok()) << render(valid.error());
  Analysed a{std::move(*m), nullptr};
  a.axis = std::make_unique<AxisAnalysis>(*a.module);
  EXPECT_EQ(a["xp"].contiguity[0], 1024);
  EXPECT_EQ(a.axis->alignment_width(a.value("xp"), a.value("mask"), 0), 4);
}

TEST(AxisInfo, BlockOfPointers) {
  Analysed a = analyse(kOffsets);
  EXPECT_EQ(a["first"].divisibility[0], 1024);
  EXPECT_EQ(a["offsets"].contiguity[0], 1024);
  EXPECT_EQ(a["offsets"].divisibility[0], 1024);
  EXPECT_EQ(a["xp"].contiguity[0], 1024);
  EXPECT_EQ(a["xp"].divisibility[0], 16);
  // n is a multiple of 16, and so is the place where the mask ends.
  EXPECT_EQ(a["mask"].constancy[0], 16);
  EXPECT_EQ(a["odd_mask"].constancy[0], 1);
  // True up to some place and false from there, wherever it is.
  EXPECT_EQ(a["odd_mask"].prefix[0], 1024);
  EXPECT_EQ(a.axis->alignment_width(a.value("xp"), a.value("mask"), 0), 4);
  // Eight halves in 16 bytes.
  EXPECT_EQ(a.axis->alignment_width(a.value("yp"), a.value("mask"), 0), 8);
  EXPECT_EQ(a.axis->alignment_width(a.value("xp"), nullptr, 0), 4);
  // The prefix is enough: lanes beyond the end are masked one by one.
  EXPECT_EQ(a.axis->alignment_width(a.value("xp"), a.value("odd_mask"), 0), 4);
}

TEST(AxisInfo, RunsOfPackedElements) {
  Analysed a = analyse(
      "  %two = constant 2 : i32[1, 64]\n"
      "  %j = arange {start = 0, end = 64} : i32[64]\n"
      "  %r = arange {start = 0, end = 16} : i32[16]\n"
      "  %k1 = expand_dims %j {axis = 0} : i32[1, 64]\n"
      "  %half = div %k1, %two : i32[1, 64]\n"
      "  %r1 = expand_dims %r {axis = 1} : i32[16, 1]\n"
      "  %stride = splat %n : i32[16, 1]\n"
      "  %rs = mul %r1, %stride : i32[16, 1]\n"
      "  %rb = broadcast %rs : i32[16, 64]\n"
      "  %hb = broadcast %half : i32[16, 64]\n"
      "  %o = add %rb, %hb : i32[16, 64]\n"
      "  %xs = splat %x : *f32[16, 64]\n"
      "  %p = addptr %xs, %o : *f32[16, 64]\n"
      "  %t = trans %p {order = [1, 0]} : *f32[64, 16]\n");
  // Half the places, two of each: they lie in one run, though they are not contiguous.
  EXPECT_EQ(a["half"].run[1], 64);
  EXPECT_EQ(a["half"].constancy[1], 2);
  EXPECT_EQ(a["half"].contiguity[1], 1);
  EXPECT_EQ(a["p"].run[1], 64);
  EXPECT_EQ(a["p"].run[0], 1);
  // The order follows the memory, not the dimensions.
  EXPECT_EQ(a.axis->order_of(a.value("t"))[0], 0);
}

TEST(AxisInfo, RunsWithSteps) {
  Analysed a = analyse(
      "  %three = constant 3 : i32[64]\n"
      "  %two = constant 2 : i32[64]\n"
      "  %far = constant 65 : i32[64]\n"
      "  %j = arange {start = 0, end = 64} : i32[64]\n"
      "  %apart = mul %j, %three : i32[64]\n"
      "  %shifted = sub %apart, %two : i32[64]\n"
      "  %below = min %shifted, %far : i32[64]\n"
      "  %packed = div %apart, %two : i32[64]\n"
      "  %beyond = mul %j, %far : i32[64]\n"
      "  %xs = splat %x : *f32[64]\n"
      "  %p = addptr %xs, %shifted : *f32[64]\n");
  for (const char* name : {"apart", "shifted", "below", "p"}) {
    EXPECT_EQ(a[name].run[0], 64) << name;
    EXPECT_EQ(a[name].step[0], 3) << name;
    EXPECT_EQ(a[name].contiguity[0], 1) << name;
  }
  EXPECT_EQ(a["packed"].step[0], 2) << "1 or 2 more each time";
  EXPECT_EQ(a["j"].step[0], 1);
  EXPECT_EQ(a["beyond"].run[0], 1) << "too far apart to share a sector";
}

/// What a convolution gathers: pixels, which a tile counts over the rows of pictures of unknown width, in rows, and
/// channels in columns.
TEST(AxisInfo, PixelsLieCloserThanChannels) {
  Analysed a = analyse(
      "  %i = arange {start = 0, end = 64} : i32[64]\n"
      "  %c = arange {start = 0, end = 32} : i32[32]\n"
      "  %width = splat %w : i32[64]\n"
      "  %two = constant 2 : i32[64]\n"
      "  %rows = splat %row : i32[64]\n"
      "  %y = div %i, %width : i32[64]\n"
      "  %x0 = rem %i, %width : i32[64]\n"
      "  %xs = mul %x0, %two : i32[64]\n"
      "  %ys = mul %y, %rows : i32[64]\n"
      "  %at = add %xs, %ys : i32[64]\n"
      "  %pixels = expand_dims %at {axis = 1} : i32[64, 1]\n"
      "  %planes = splat %plane : i32[32]\n"
      "  %filters = splat %filter : i32[64]\n"
      "  %cs = mul %c, %planes : i32[32]\n"
      "  %fs = mul %i, %filters : i32[64]\n"
      "  %channels = expand_dims %cs {axis = 0} : i32[1, 32]\n"
      "  %f1 = expand_dims %fs {axis = 1} : i32[64, 1]\n"
      "  %p1 = broadcast %pixels : i32[64, 32]\n"
      "  %c1 = broadcast %channels : i32[64, 32]\n"
      "  %f2 = broadcast %f1 : i32[64, 32]\n"
      "  %offset = add %p1, %c1 : i32[64, 32]\n"
      "  %weights = add %f2, %c1 : i32[64, 32]\n"
      "  %wrapped = rem %i, %two : i32[64]\n"
      "  %base = splat %x : *f32[64, 32]\n"
      "  %p = addptr %base, %offset : *f32[64, 32]\n"
      "  %q = addptr %base, %weights : *f32[64, 32]\n",
      "%x: *f32 {divisibility = 16}, %w: i32, %row: i32, %plane: i32, %filter: i32 {divisibility = 16}");
  EXPECT_EQ(a["y"].usual_step[0], 0) << "a quotient by an unknown number";
  EXPECT_EQ(a["at"].usual_step[0], 2);
  EXPECT_EQ(a["p"].usual_step[0], 2);
  EXPECT_GT(a["p"].usual_step[1], 64);
  EXPECT_GT(a["wrapped"].usual_step[0], 64) << "known to wrap all the time";
  EXPECT_EQ(a["p"].contiguity[0], 1) << "nothing is relied on";
  EXPECT_EQ(a.axis->order_of(a.value("p"))[0], 0);
  // Of two unknown strides the one that 16 divides is taken to be larger.
  EXPECT_EQ(a.axis->order_of(a.value("q"))[0], 1);
}

TEST(AxisInfo, RowsOfSmallPicturesWrapSeldom) {
  Analysed a = analyse(
      "  %i = arange {start = 0, end = 64} : i32[64]\n"
      "  %width = constant 15 : i32[64]\n"
      "  %three = constant 3 : i32[64]\n"
      "  %rows = splat %row : i32[64]\n"
      "  %column = rem %i, %width : i32[64]\n"
      "  %line = div %i, %width : i32[64]\n"
      "  %ys = mul %line, %rows : i32[64]\n"
      "  %at = add %column, %ys : i32[64]\n"
      "  %third = div %i, %three : i32[64]\n",
      "%row: i32");
  EXPECT_EQ(a["at"].usual_step[0], 1);
  EXPECT_GT(a["third"].usual_step[0], 0);
}

TEST(AxisInfo, MasksThatEndWithinAVector) {
  Analysed a = analyse(std::string(kOffsets) +
                       "  %s = splat %n : i32[1024]\n"
                       "  %up_to = cmp %offsets, %s {predicate = \"le\"} : i1[1024]\n"
                       "  %more = cmp %s, %offsets {predicate = \"gt\"} : i1[1024]\n"
                       "  %behind = cmp %offsets, %s {predicate = \"ge\"} : i1[1024]\n"
                       "  %shifted = add %offsets, %ks : i32[1024]\n"
                       "  %anywhere = cmp %shifted, %s {predicate = \"lt\"} : i1[1024]\n"
                       "  %both = and %up_to, %more : i1[1024]\n"
                       "  %tall = expand_dims %both {axis = 1} : i1[1024, 1]\n"
                       "  %wide = broadcast %tall : i1[1024, 8]\n"
                       "  %turned = trans %wide {order = [1, 0]} : i1[8, 1024]\n");
  EXPECT_EQ(a["up_to"].prefix[0], 1024);
  EXPECT_EQ(a["more"].prefix[0], 1024);
  EXPECT_EQ(a["behind"].prefix[0], 16);  // n is a multiple of 16
  // A sum with an unknown number may wrap around, and the comparison with it.
  EXPECT_EQ(a["anywhere"].prefix[0], 1);
  EXPECT_EQ(a["both"].prefix[0], 1024);
  EXPECT_EQ(a["wide"].prefix[0], 1024);
  EXPECT_EQ(a["wide"].prefix[1], 8);
  EXPECT_EQ(a["turned"].prefix[1], 1024);
}

TEST(AxisInfo, UnalignedStart) {
  Analysed a = analyse(std::string(kOffsets) +
                       "  %two = constant 2 : i32[1024]\n"
                       "  %shifted = add %offsets, %two : i32[1024]\n"
                       "  %p2 = addptr %xs, %shifted : *f32[1024]\n"
                       "  %anywhere = add %offsets, %ks : i32[1024]\n"
                       "  %pk = addptr %xs, %anywhere : *f32[1024]\n");
  EXPECT_EQ(a["shifted"].contiguity[0], 1024);
  // Two elements: the start is 8 bytes off a multiple of 16.
  EXPECT_EQ(a.axis->alignment_width(a.value("p2"), nullptr, 0), 2);
  // Contiguous and not aligned.
  EXPECT_EQ(a["pk"].contiguity[0], 1024);
  EXPECT_EQ(a.axis->alignment_width(a.value("pk"), nullptr, 0), 1);
}

TEST(AxisInfo, RowsAndColumns) {
  Analysed a = analyse(
      "  %r = arange {start = 0, end = 16} : i32[16]\n"
      "  %c = arange {start = 0, end = 64} : i32[64]\n"
      "  %r1 = expand_dims %r {axis = 1} : i32[16, 1]\n"
      "  %c1 = expand_dims %c {axis = 0} : i32[1, 64]\n"
      "  %stride = splat %n : i32[16, 1]\n"
      "  %rs = mul %r1, %stride : i32[16, 1]\n"
      "  %rb = broadcast %rs : i32[16, 64]\n"
      "  %cb = broadcast %c1 : i32[16, 64]\n"
      "  %o = add %rb, %cb : i32[16, 64]\n"
      "  %xs = splat %x : *f32[16, 64]\n"
      "  %p = addptr %xs, %o : *f32[16, 64]\n"
      "  %t = trans %p {order = [1, 0]} : *f32[64, 16]\n");
  EXPECT_EQ(a["rs"].divisibility[1], 16);
  EXPECT_EQ(a["o"].contiguity[1], 64);
  EXPECT_EQ(a["o"].contiguity[0], 1);
  EXPECT_EQ(a["o"].divisibility[1], 16);
  EXPECT_EQ(a.axis->alignment_width(a.value("p"), nullptr, 1), 4);
  EXPECT_EQ(a.axis->order_of(a.value("p"))[0], 1);
  EXPECT_EQ(a.axis->order_of(a.value("t"))[0], 0);
}

TEST(AxisInfo, DivisionRemainderShiftAndMasks) {
  Analysed a = analyse(std::string(kOffsets) +
                       "  %c8 = constant 8 : i32[1024]\n"
                       "  %c7 = constant 7 : i32[1024]\n"
                       "  %c3 = constant 3 : i32[1024]\n"
                       "  %q = div %offsets, %c8 : i32[1024]\n"
                       "  %s = shr %offsets, %c3 : i32[1024]\n"
                       "  %m = rem %offsets, %ns : i32[1024]\n"
                       "  %low = and %offsets, %c7 : i32[1024]\n"
                       "  %any = sub %offsets, %ns : i32[1024]\n"
                       "  %anyq = div %any, %c8 : i32[1024]\n"
                       "  %anym = rem %any, %c8 : i32[1024]\n"
                       "  %twice = mul %offsets, %c3 : i32[1024]\n");
  EXPECT_EQ(a["q"].constancy[0], 8);
  EXPECT_EQ(a["s"].constancy[0], 8);
  EXPECT_EQ(a["m"].contiguity[0], 16);
  // A remainder by a multiple of 16 keeps runs of 16.
  EXPECT_EQ(a["m"].divisibility[0], 16);
  EXPECT_EQ(a["low"].contiguity[0], 8);
  EXPECT_EQ(a["anyq"].constancy[0], 1) << "-1 and 0 divide to the same, -8 does not";
  EXPECT_EQ(a["anym"].contiguity[0], 1);
  // 3, 6, 9: nothing contiguous.
  EXPECT_EQ(a["twice"].contiguity[0], 1);
}

/// 2^63 does not fit: the mask of all ones below the sign says nothing, and nothing overflows.
TEST(AxisInfo, MaskOfAllOnes) {
  Analysed a = analyse(std::string(kOffsets) +
                       "  %wide = cast %offsets : i64[1024]\n"
                       "  %ones = constant 9223372036854775807 : i64[1024]\n"
                       "  %kept = and %wide, %ones : i64[1024]\n");
  EXPECT_EQ(a["kept"].contiguity[0], 1);
  EXPECT_EQ(a["kept"].constancy[0], 1);
}

TEST(AxisInfo, HintsAndCasts) {
  Analysed a = analyse(std::string(kOffsets) +
                       "  %w = cast %offsets : i64[1024]\n"
                       "  %h = hint %ks {multiple_of = [32], max_contiguous = [64]} : i32[1024]\n"
                       "  %small = cast %offsets : i8[1024]\n"
                       "  %back = cast %small : i32[1024]\n");
  EXPECT_EQ(a["w"].contiguity[0], 1024);
  // What is promised holds, though nothing shows it.
  EXPECT_EQ(a["h"].contiguity[0], 64);
  EXPECT_EQ(a["h"].divisibility[0], 32);
  // 128 numbers of an i8 are consecutive before it wraps.
  EXPECT_EQ(a["back"].contiguity[0], 128);
}

/// As in Triton, which moves no more elements than a mask is equal for: a wrong hint does no harm where that is one.
TEST(AxisInfo, HintsAreNotReliedOnWhereAMaskEndsWithinAVector) {
  for (bool assured : {false, true}) {
    Analysed a = analyse(std::string(kOffsets) +
                         "  %anywhere = add %lanes, %ks : i32[1024]\n"
                         "  %ap = addptr %xs, %anywhere : *f32[1024]\n"
                         "  %hinted = hint %ap {multiple_of = [16]" +
                         (assured ? ", assured = true" : "") + "} : *f32[1024]\n");
    const Value* hinted = a.value("hinted");
    EXPECT_EQ(a.axis->alignment_width(hinted, nullptr, 0), 4);
    EXPECT_EQ(a.axis->alignment_width(hinted, a.value("mask"), 0), 4) << "n is a multiple of 16";
    EXPECT_EQ(a.axis->alignment_width(hinted, a.value("odd_mask"), 0), assured ? 4 : 1);
    EXPECT_EQ(a.axis->alignment_width(a.value("xp"), a.value("odd_mask"), 0), 4) << "no hint says so";
  }
}

TEST(AxisInfo, Assumptions) {
  Analysed a = analyse(
      "  %c32 = constant 32 : i32\n"
      "  %zero = constant 0 : i32\n"
      "  %rest = rem %k, %c32 : i32\n"
      "  %fits = cmp %rest, %zero {predicate = \"eq\"} : i1\n"
      "  %natural = cmp %n, %zero {predicate = \"ge\"} : i1\n"
      "  %both = and %fits, %natural : i1\n"
      "  assume %both\n");
  EXPECT_EQ(a["k"].divisibility[0], 32);
  // A remainder of 0 says nothing about the sign.
  EXPECT_FALSE(a["k"].non_negative);
  EXPECT_TRUE(a["n"].non_negative);
}

/// The column of a program in a grouped order: its number divided by the tiles that its group has.
TEST(AxisInfo, CountsWithACapArePositive) {
  Analysed a = analyse(
      "  %pid = program_id {axis = 0} : i32\n"
      "  %c8 = constant 8 : i32\n"
      "  %minus = constant -8 : i32\n"
      "  %left = sub %n, %k : i32\n"
      "  %tiles = min %left, %c8 : i32\n"
      "  %below = min %left, %minus : i32\n"
      "  %column = div %pid, %tiles : i32\n"
      "  %other = div %pid, %left : i32\n"
      "  %another = div %pid, %below : i32\n"
      "  %negative = div %k, %tiles : i32\n");
  EXPECT_FALSE(a["tiles"].non_negative);
  EXPECT_TRUE(a["column"].non_negative);
  EXPECT_FALSE(a["other"].non_negative);
  EXPECT_FALSE(a["another"].non_negative);
  EXPECT_FALSE(a["negative"].non_negative);
}

TEST(AxisInfo, LoopsKeepWhatHoldsInEveryIteration) {
  Analysed a = analyse(std::string(kOffsets) +
                       "  %zero = constant 0 : i32\n"
                       "  %out, %out2 = for %i = %zero to %n step %block iter (%o = %offsets, %u = %offsets) : i32 -> "
                       "(i32[1024], i32[1024]) {\n"
                       "    %step = splat %block : i32[1024]\n"
                       "    %o1 = add %o, %step : i32[1024]\n"
                       "    %u1 = add %u, %ks : i32[1024]\n"
                       "    yield %o1, %u1\n"
                       "  }\n");
  EXPECT_EQ(a["i"].divisibility[0], 1024);
  // 1024 more each time: every iteration starts aligned.
  EXPECT_EQ(a["o"].contiguity[0], 1024);
  EXPECT_EQ(a["out"].divisibility[0], 1024);
  EXPECT_EQ(a["out2"].contiguity[0], 1024);
  // An unknown step ends the alignment.
  EXPECT_EQ(a["out2"].divisibility[0], 1);
}

}  // namespace
}  // namespace kiln::analysis
