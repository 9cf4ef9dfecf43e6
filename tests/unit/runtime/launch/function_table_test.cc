// Functions whose names the caller has resolved.
#include "kiln/function_table.h"

#include <gtest/gtest.h>

#include "kiln/tensor.h"
#include "tests/unit/open_device.h"

namespace kiln {
namespace {

template <class T>
T must(Result<T> r) {
  EXPECT_TRUE(r.ok()) << render(r.error());
  return *std::move(r);
}

NameValue tuple(std::vector<NameValue> items, std::vector<std::string> fields = {}) {
  return std::make_shared<const TupleValue>(TupleValue{std::move(items), std::move(fields)});
}

class FunctionTableTest : public testing::Test {
 protected:
  FunctionId add(std::string_view text, int line = 1) {
    const FunctionId id = must(table.add(text, "test.py", line));
    table.bind(id, "tl", ModuleName{"triton.language"});
    return id;
  }
  /// What the kernel writes to its first parameter, of eight floats.
  std::vector<double> run(FunctionId kernel, std::vector<ImageArgument> more = {}) {
    std::vector<ImageArgument> args = {{.type = "*fp32"}};
    for (ImageArgument& a : more) args.push_back(std::move(a));
    ImageRequest request;
    request.target = "host";
    Result<Image> image = table.compile(test_runtime(), kernel, args, request);
    if (!image.ok()) {
      last_error = render(image.error());
      return {};
    }
    const Device cpu = must(open_device("cpu"));
    const int64_t shape[] = {8};
    const Tensor out = must(Tensor::full(cpu, DType::kF32, shape, -1));
    std::vector<uint64_t> slots = {out.address()};
    for (size_t i = 1; i < image->params().size(); ++i) slots.push_back(10 * i);
    const LoadedImage loaded = must(LoadedImage::load(*image, cpu));
    const Status launched = loaded.launch({1, 1, 1}, slots);
    EXPECT_TRUE(launched.ok());
    for (const ImageParam& p : image->params()) params += p.name + " ";
    return must(out.to_doubles());
  }

  FunctionTable table;
  std::string last_error, params;
};

constexpr const char* kStore = R"(def kernel(out):
    tl.store(out + tl.arange(0, 8), value(tl.arange(0, 8)))
)";

TEST_F(FunctionTableTest, TellsWhatAFunctionReads) {
  const FunctionId f = add(R"(@decorated(by=this)
def f(x, n=SIZE, m=n):
    y = tl.math.exp(x) + helpers.scale
    return y + bias
)");
  EXPECT_EQ(table.names(f), (std::vector<std::string>{"SIZE", "bias", "helpers", "n", "tl", "helpers.scale", "tl.math",
                                                      "tl.math.exp"}));
}

TEST_F(FunctionTableTest, HelpersOfOneNameDoNotMeet) {
  const FunctionId one = add("def value(x):\n    return x + BIAS\n"),
                   two = add("def value(x):\n    return other(x) * BIAS\n");
  table.bind(one, "BIAS", int64_t{100});
  table.bind(two, "BIAS", 0.5);
  table.bind(two, "other", one);
  const FunctionId kernel = add(kStore);
  table.bind(kernel, "value", two);
  EXPECT_EQ(run(kernel), (std::vector<double>{50, 50.5, 51, 51.5, 52, 52.5, 53, 53.5}));
}

TEST_F(FunctionTableTest, FollowsModulesOfTheCaller) {
  const FunctionId helper = add("def plus_one(x):\n    return x + 1\n");
  table.bind_member("my.helpers", "inner", ModuleName{"my.helpers.inner"});
  table.bind_member("my.helpers.inner", "f", helper);
  const FunctionId kernel = add("def kernel(out):\n    tl.store(out + tl.arange(0, 8), h.inner.f(tl.arange(0, 8)))\n");
  table.bind(kernel, "h", ModuleName{"my.helpers"});
  EXPECT_EQ(run(kernel), (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(FunctionTableTest, HostsComputeConstexprFunctions) {
  const FunctionId evaluated = table.add_evaluated(
      "pick", "version 1",
      [](std::span<const NameValue> args,
         std::span<const std::pair<std::string, NameValue>> named) -> Result<NameValue> {
        if (args.size() != 2 || named.size() != 1 || named[0].first != "by")
          return Diagnostic{ErrorKind::kType, "pick was called in another way", {}, {}};
        return tuple({std::get<int64_t>(args[0]) * std::get<int64_t>(named[0].second), args[1]}, {"size", "type"});
      });
  const FunctionId value =
      add("def value(x):\n    p: tl.constexpr = pick(4, tl.float16, by=2)\n"
          "    return tl.arange(0, p.size).to(p.type) + p[0]\n");
  table.bind(value, "pick", evaluated);
  const FunctionId kernel = add(kStore);
  table.bind(kernel, "value", value);
  EXPECT_EQ(run(kernel), (std::vector<double>{8, 9, 10, 11, 12, 13, 14, 15})) << last_error;

  const FunctionId wrong = add("def kernel(out):\n    tl.store(out, pick(1))\n", 41);
  table.bind(wrong, "pick", evaluated);
  run(wrong);
  EXPECT_EQ(last_error,
            "test.py:42:19: error: pick: pick was called in another way\n  42 |     tl.store(out, pick(1))\n"
            "     |                   ^^^^^^^\n");
}

TEST_F(FunctionTableTest, TakesTuples) {
  const FunctionId kernel = add(R"(def kernel(out, pair, *rest):
    i = tl.arange(0, 8)
    tl.store(out + i, i * pair.scale + pair.shift[1] + rest[0] + rest[1])
)");
  const ImageArgument number{.type = "i32"}, two{.value = int64_t{2}};
  const std::vector<double> got = run(
      kernel,
      {{.is_tuple = true, .items = {two, {.is_tuple = true, .items = {number, number}}}, .fields = {"scale", "shift"}},
       {.is_tuple = true, .items = {number, two}}});
  EXPECT_EQ(params, "out pair.1.0 pair.1.1 rest.0 ") << last_error;
  EXPECT_EQ(got, (std::vector<double>{52, 54, 56, 58, 60, 62, 64, 66}));
}

TEST_F(FunctionTableTest, ClassesOfNamedTuplesMakeThem) {
  const FunctionId pair = add("class Pair(NamedTuple):\n    first: object\n    second: object = None\n");
  table.bind_default(pair, "second", int64_t{3});
  const FunctionId kernel = add(R"(def kernel(out):
    p = Pair(second=tl.arange(0, 8), first=out)
    tl.store(p.first + p.second, p.second * Pair(0).second)
)");
  table.bind(kernel, "Pair", pair);
  EXPECT_EQ(run(kernel), (std::vector<double>{0, 3, 6, 9, 12, 15, 18, 21})) << last_error;
  EXPECT_FALSE(table.add("class Pair:\n    first: object\n", "test.py").ok());
}

TEST_F(FunctionTableTest, DefaultsAreValues) {
  const FunctionId value = add("def value(x, by=computed()['key'], plus=BIAS):\n    return x * by + plus\n");
  table.bind_default(value, "by", int64_t{3});
  table.bind(value, "BIAS", int64_t{1});
  const FunctionId kernel = add(kStore);
  table.bind(kernel, "value", value);
  EXPECT_EQ(run(kernel), (std::vector<double>{1, 4, 7, 10, 13, 16, 19, 22})) << last_error;
}

TEST_F(FunctionTableTest, UnboundNamesAreErrorsWithAPlace) {
  const FunctionId kernel = add(kStore, 7);
  run(kernel);
  EXPECT_TRUE(last_error.starts_with("test.py:8:37: error: the name value is not defined\n")) << last_error;
  EXPECT_FALSE(table.add("def f(:\n", "test.py").ok());
  EXPECT_FALSE(table.add("x = 1\n", "test.py").ok());
}

TEST_F(FunctionTableTest, KnowsTriton) {
  EXPECT_TRUE(FunctionTable::knows("triton.language.load"));
  EXPECT_TRUE(FunctionTable::knows("triton.language.math"));
  EXPECT_FALSE(FunctionTable::knows("triton.language.no_such_function"));
  EXPECT_FALSE(FunctionTable::knows("numpy"));
}

TEST_F(FunctionTableTest, PlansMakeImagesWithoutCode) {
  const FunctionId kernel = add("def kernel(out, n):\n    tl.store(out, n)\n");
  ImageRequest request;
  request.target = "sm_90a";
  const ImageArgument args[] = {{.type = "*i32:16"}, {.type = "i32"}};
  const Image image = must(table.compile(test_runtime(), kernel, args, request));
  const Image again = must(Image::from_plan(image.plan()));
  EXPECT_EQ(again.info().name, "kernel");
  EXPECT_EQ(again.threads(), image.threads());
  ASSERT_EQ(again.params().size(), 2u);
  EXPECT_EQ(again.params()[1].name, "n");
  EXPECT_TRUE(again.info().ptx.empty());
  EXPECT_FALSE(Image::from_plan("something else").ok());
}

}  // namespace
}  // namespace kiln
