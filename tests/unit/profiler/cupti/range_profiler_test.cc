// The host side of counters through the real CUPTI: what chips can count needs no GPU.
#include "profiler/cupti/range_profiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/target/target.h"
#include "support/diag.h"
#include "tests/unit/open_device.h"
#include "tests/unit/profiler/cupti/cupti_or_skip.h"

namespace kiln::profiler::cupti {
namespace {

std::vector<std::string> names_of(const std::string& chip, std::string_view bundle_name) {
  auto wanted = bundle(bundle_name);
  EXPECT_TRUE(wanted.ok());
  auto found = resolve(chip, *wanted);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  return found.ok() ? found->names : std::vector<std::string>{};
}

TEST(RangeProfilerHost, KnowsTheChipsOfOurTargets) {
  CUPTI_OR_SKIP();
  auto known = chips();
  ASSERT_TRUE(known.ok());
  EXPECT_GT(known->size(), 20u);
  for (const target::Target& t : target::all()) {
    auto chip = chip_of_target(t.name);
    EXPECT_EQ(chip.ok(), t.is_cuda()) << t.name;
    if (chip.ok()) {
      EXPECT_NE(std::find(known->begin(), known->end(), *chip), known->end()) << *chip;
    }
  }
}

TEST(RangeProfilerHost, TheDefaultBundleIsOnePassOnAHopper) {
  CUPTI_OR_SKIP();
  auto p = preview("GH100", names_of("GH100", "default"));
  ASSERT_TRUE(p.ok()) << p.error().message;
  EXPECT_EQ(p->chip, "GH100");
  EXPECT_EQ(p->metrics, 9);
  EXPECT_EQ(p->passes, 1);
}

TEST(RangeProfilerHost, EveryBundleHasItsMetricsOnEveryChip) {
  CUPTI_OR_SKIP();
  for (const char* chip : {"GA100", "GA102", "AD102", "GH100", "GB100", "GB202"})
    for (const Bundle& b : bundles()) {
      SCOPED_TRACE(std::string(chip) + " " + std::string(b.name));
      auto found = resolve(chip, *bundle(b.name));
      ASSERT_TRUE(found.ok()) << found.error().message;
      for (const Metric* m : found->missing) {
        // What a generation lacks because it has no such instructions.
        const bool expected = m->id == MetricId::kStallGmma || m->id == MetricId::kStallConstant ||
                              m->id == MetricId::kTensorFp8 || m->id == MetricId::kTensorF16;
        EXPECT_TRUE(expected) << m->title << ": " << m->names;
      }
      auto p = preview(chip, found->names);
      ASSERT_TRUE(p.ok()) << p.error().message;
      EXPECT_GE(p->passes, 1);
      EXPECT_LE(p->passes, 12);
    }
}

TEST(RangeProfilerHost, AnUnknownChipIsAnError) {
  CUPTI_OR_SKIP();
  auto p = preview("GX999", {});
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.error().kind, ErrorKind::kValue);
  EXPECT_NE(p.error().message.find("no chip 'GX999'"), std::string::npos);
  EXPECT_NE(p.error().message.find("GH100"), std::string::npos);
}

TEST(RangeProfilerHost, AnUnknownMetricIsNamedWithTheNearestOne) {
  CUPTI_OR_SKIP();
  const std::string wanted[] = {"gpu__time_duration.sum", "dram__bytes_raed.sum"};
  auto p = preview("GH100", wanted);
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.error().kind, ErrorKind::kName);
  EXPECT_EQ(p.error().message, "GH100 has no metric 'dram__bytes_raed.sum'");
  ASSERT_FALSE(p.error().notes.empty());
  EXPECT_NE(render(p.error()).find("did you mean 'dram__bytes_read'"), std::string::npos) << render(p.error());
}

TEST(RangeProfilerHost, AMetricWithoutItsRollUpIsToldWhatFollows) {
  CUPTI_OR_SKIP();
  const std::string wanted[] = {"l1tex__t_sector_hit_rate.sum"};
  auto p = preview("GH100", wanted);
  ASSERT_FALSE(p.ok());
  EXPECT_NE(render(p.error()).find(".pct"), std::string::npos) << render(p.error());
}

TEST(RangeProfilerHost, NoMetricsNeedNoPass) {
  CUPTI_OR_SKIP();
  auto p = preview("GH100", {});
  ASSERT_TRUE(p.ok()) << p.error().message;
  EXPECT_EQ(p->passes, 0);
}

TEST(RangeProfilerHost, ListsBaseMetricsWithDescriptions) {
  CUPTI_OR_SKIP();
  auto some = list_metrics("GH100", "dram__bytes");
  ASSERT_TRUE(some.ok());
  ASSERT_EQ(some->size(), 3u);
  EXPECT_EQ((*some)[0].name, "dram__bytes");
  EXPECT_EQ((*some)[1].description, "# of bytes read from DRAM");
  EXPECT_EQ((*some)[1].kind, "counter");
  EXPECT_EQ(list_metrics("GH100", "no such thing")->size(), 0u);
  EXPECT_GT(list_metrics("GH100", "")->size(), 1000u);
}

TEST(RangeProfilerTarget, TheCpuHasNoCounters) {
  CUPTI_OR_SKIP();
  Device cpu = *open_device("cpu");
  const std::string wanted[] = {"gpu__time_duration.sum"};
  bool ran = false;
  auto c = collect(cpu, wanted, {}, [&]() -> Status {
    ran = true;
    return {};
  });
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().kind, ErrorKind::kUnsupported);
  EXPECT_FALSE(ran);
  EXPECT_EQ(chip_of(cpu).error().kind, ErrorKind::kUnsupported);
}

TEST(Metrics, TheTableIsSound) {
  for (size_t i = 0; i < metrics().size(); ++i) {
    const Metric& m = metrics()[i];
    EXPECT_EQ(static_cast<size_t>(m.id), i);
    EXPECT_FALSE(m.bundles.empty()) << m.title;
    EXPECT_FALSE(m.meaning.empty()) << m.title;
    for (char letter : m.bundles)
      EXPECT_TRUE(std::any_of(bundles().begin(), bundles().end(), [&](const Bundle& b) { return b.letter == letter; }))
          << m.title << ": " << letter;
  }
  for (const Bundle& b : bundles()) EXPECT_FALSE(bundle(b.name)->empty());
  EXPECT_EQ(bundle("nothing").error().message,
            "there is no bundle 'nothing'; there are default, advice, memory, compute, stalls, occupancy, tensor");
}

TEST(Metrics, FiguresAreMediansByKernel) {
  const std::vector<KernelCounters> launches = {
      {"a", {1000, 50}}, {"b", {7000, NAN}}, {"a", {3000, 60}}, {"a", {2000, NAN}}};
  const std::optional<MetricId> ids[] = {MetricId::kTime, MetricId::kOccupancy};
  std::vector<KernelFigures> f = figures(launches, ids);
  ASSERT_EQ(f.size(), 2u);
  EXPECT_EQ(f[0].kernel, "a");
  EXPECT_EQ(f[0].launches, 3);
  EXPECT_DOUBLE_EQ(*f[0].us, 2);
  EXPECT_DOUBLE_EQ(*f[0].achieved_occupancy, 55);
  EXPECT_FALSE(f[0].dram_percent);
  EXPECT_EQ(f[1].launches, 1);
  EXPECT_DOUBLE_EQ(*f[1].us, 7);
  EXPECT_FALSE(f[1].achieved_occupancy) << "NaN is no figure";
  EXPECT_TRUE(figures({}, ids).empty());
}

}  // namespace
}  // namespace kiln::profiler::cupti
