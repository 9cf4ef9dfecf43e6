// The guess of a launch against the key itself: both must say the same of any two lists of arguments.
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/launch/args.h"
#include "support/launch_options.h"
#include "tests/unit/open_device.h"

namespace kiln::runtime {
namespace {

using Args = std::vector<std::optional<Arg>>;
using Shape = std::vector<int64_t>;

struct KeyStepsTest : testing::Test {
  Device cpu = *open_device("cpu");
  Tensor f32 = *Tensor::zeros(cpu, DType::kF32, Shape{64}), bf16 = *Tensor::zeros(cpu, DType::kBF16, Shape{64, 64});
  Tensor odd = *f32.as_strided(Shape{8}, Shape{1}, 3), sixteen = *f32.as_strided(Shape{8}, Shape{1}, 4);
  Tensor freed = *Tensor::zeros(cpu, DType::kF32, Shape{8});
  Tensor none;

  void SetUp() override { freed.storage()->free(); }

  /// Of rows that end within 16 bytes.
  std::shared_ptr<const TensorDescriptor> ragged() const {
    return std::make_shared<const TensorDescriptor>(
        *TensorDescriptor::from_tensor(*bf16.as_strided(Shape{64, 60}, Shape{64, 1}, 0), {16, 16}));
  }

  std::vector<std::optional<Arg>> values() {
    auto blocks = [&](std::vector<int64_t> block) {
      return std::make_shared<const TensorDescriptor>(*TensorDescriptor::from_tensor(bf16, std::move(block)));
    };
    std::vector<std::optional<Arg>> all = {std::nullopt, Arg(std::monostate()), Arg(false), Arg(true)};
    for (int64_t v : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{15}, int64_t{16}, int64_t{-16}, int64_t{-1},
                      int64_t{INT32_MAX}, int64_t{INT32_MIN}, int64_t{INT32_MAX} + 1, int64_t{INT32_MAX} + 2,
                      int64_t{INT32_MIN} - 1, INT64_MAX, INT64_MIN})
      all.emplace_back(Arg(v));
    for (uint64_t v : {uint64_t{0}, uint64_t{1}, uint64_t{16}, uint64_t{17}, uint64_t{1} << 40, uint64_t{1} << 63,
                       (uint64_t{1} << 63) + 1})
      all.emplace_back(Arg(v));
    for (double v : {0.0, -0.0, 1.0, 16.0, 1e300}) all.emplace_back(Arg(v));
    for (const char* v : {"", "tf32", "ieee"}) all.emplace_back(Arg(std::string(v)));
    all.insert(all.end(), {Arg(DType::kF32), Arg(DType::kBF16), Arg(Kernel())});
    for (const Tensor* t : {&f32, &bf16, &odd, &sixteen, &freed, &none}) {
      all.emplace_back(Arg(*t));
      all.emplace_back(Arg(t));
    }
    all.emplace_back(Arg(static_cast<const Tensor*>(nullptr)));
    all.insert(all.end(), {Arg(blocks({16, 16})), Arg(blocks({16, 32})), Arg(ragged()),
                           Arg(std::shared_ptr<const TensorDescriptor>())});
    return all;
  }

  static std::vector<ParamInfo> kinds() {
    std::vector<ParamInfo> kinds(6);
    kinds[0].name = "plain";
    kinds[1].name = "unspecialized", kinds[1].specialize = false;
    kinds[2].name = "i64", kinds[2].annotation = DType::kI64;
    kinds[3].name = "f32", kinds[3].annotation = DType::kF32;
    kinds[4].name = "constant", kinds[4].is_constexpr = true;
    kinds[5].name = "with_default", kinds[5].is_constexpr = true, kinds[5].has_default = true;
    kinds[5].default_value = Arg(int64_t{16});
    return kinds;
  }
};

TEST_F(KeyStepsTest, MatchesExactlyWhatGivesTheSameKey) {
  const CodeOptions options;
  const KeyEnd end = {&cpu.impl()->backend(), &options};
  ParamInfo first, last;
  first.name = "first", last.name = "last";
  int same = 0, different = 0;
  for (const ParamInfo& param : kinds()) {
    const std::vector<ParamInfo> params = {first, param, last};
    const std::vector<ParamRule> rules = rules_of(params);
    for (const auto& before : values()) {
      // What comes behind shows that each piece of the key has its length.
      const Args known = {Arg(f32), before, Arg(int64_t{7})};
      BoundArgs bound;
      if (!bind_args("k", params, known, bound).ok()) continue;
      append(end, bound.key);
      const std::string key(bound.key.view());
      const KeySteps steps(rules, end, key);
      for (const auto& now : values()) {
        const Args given = {Arg(&f32), now, Arg(int64_t{9})};
        BoundArgs other;
        const bool valid = bind_args("k", params, given, other).ok();
        if (valid) append(end, other.key);
        uint64_t slots[kMostFastSlots];
        const bool matches = steps.match(params, rules, given, end, slots);
        ASSERT_EQ(matches, valid && other.key.view() == key)
            << param.name << ", before: kind " << (before ? before->index() : 99) << ", now: kind "
            << (now ? now->index() : 99);
        ++(matches ? same : different);
        if (!matches) continue;
        for (int i = 0; i < other.num_slots; ++i) ASSERT_EQ(slots[i], other.slots()[i]) << param.name << " slot " << i;
      }
    }
  }
  EXPECT_GT(same, 200);
  EXPECT_GT(different, 2000);
}

TEST_F(KeyStepsTest, RowsOfDescriptorsAreWholeOrNot) {
  std::vector<ParamInfo> params(1);
  const auto whole = std::make_shared<const TensorDescriptor>(*TensorDescriptor::from_tensor(bf16, {16, 16}));
  const auto divisibility = [&](const std::shared_ptr<const TensorDescriptor>& d) {
    return arg_specs(params, Args{Arg(d)})[0].divisibility;
  };
  EXPECT_EQ(divisibility(whole), 16);
  EXPECT_EQ(divisibility(ragged()), 1);
  params[0].specialize = false;
  EXPECT_EQ(divisibility(whole), 1);
}

TEST_F(KeyStepsTest, OptionsAndTheNumberOfArgumentsBelongToIt) {
  const std::vector<ParamInfo> params(1);
  const std::vector<ParamRule> rules = rules_of(params);
  const Args args = {Arg(f32)};
  const CodeOptions options;
  const KeyEnd end = {&cpu.impl()->backend(), &options};
  BoundArgs bound;
  ASSERT_TRUE(bind_args("k", params, args, bound).ok());
  append(end, bound.key);
  const KeySteps steps(rules, end, bound.key.view());
  uint64_t slots[kMostFastSlots];
  EXPECT_TRUE(steps.match(params, rules, args, end, slots));
  EXPECT_EQ(slots[0], f32.address());
  for (const LaunchOption& o : kLaunchOptions) {
    CodeOptions other;
    o.set(other, o.get(other) == o.most ? o.least : o.most);
    EXPECT_FALSE(steps.match(params, rules, args, {&cpu.impl()->backend(), &other}, slots)) << o.name;
    BoundArgs bound_so;
    ASSERT_TRUE(bind_args("k", params, args, bound_so).ok());
    append({&cpu.impl()->backend(), &other}, bound_so.key);
    EXPECT_NE(bound_so.key.view(), bound.key.view()) << o.name;
  }
  EXPECT_FALSE(steps.match(params, rules, Args{}, end, slots));
  EXPECT_FALSE(steps.match(params, rules, Args{Arg(f32), Arg(f32)}, end, slots));
}

}  // namespace
}  // namespace kiln::runtime
