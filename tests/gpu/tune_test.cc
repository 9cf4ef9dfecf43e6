// The autotuner on a real GPU: tiles of the pointer-form matmul, one that does not fit and one that is wrong among
// them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "kernels/matmul/matmul.h"
#include "profiler/tune/output_check.h"
#include "profiler/tune/records.h"
#include "profiler/tune/tune.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

using profiler::TuneCandidate;
using profiler::TuneResult;
using profiler::TuneState;

TEST(GpuTune, TilesOfAProduct) {
  GPU_OR_SKIP(device);
  char name[] = "/tmp/kiln_gpu_tune_XXXXXX";
  const std::string root = mkdtemp(name);
  setenv("KILN_CACHE_DIR", root.c_str(), 1);
  constexpr int64_t kM = 1000, kN = 520, kK = 264;
  kernels::Sources sources;
  const Kernel kernel = *sources.kernel("matmul", "matmul_kernel");
  const int64_t a_shape[] = {kM, kK}, b_shape[] = {kK, kN}, c_shape[] = {kM, kN};
  Tensor a = *randn(device, DType::kF16, a_shape, 1), b = *randn(device, DType::kF16, b_shape, 2),
         c = *Tensor::full(device, DType::kF16, c_shape, 7);
  std::vector<TuneCandidate> candidates;
  auto add = [&](int m, int n, int k, int warps, int stages, int64_t depth) {
    TuneCandidate t;
    t.config = fmt::format("{}x{}x{}, {} warps, {} stages, K = {}", m, n, k, warps, stages, depth);
    kernels::Launch launch = *kernels::pointer_matmul_launch(sources, a, b, c, {m, n, k, stages, warps});
    launch.args[5] = depth;
    t.kernel = launch.kernel, t.grid = launch.grid, t.args = launch.args, t.options = launch.options;
    candidates.push_back(t);
  };
  add(64, 64, 32, 4, 3, kK);
  add(128, 64, 32, 4, 3, kK);
  add(128, 128, 64, 8, 3, kK);
  add(256, 256, 128, 8, 6, kK);    // more shared memory than any block may have
  add(64, 128, 32, 4, 3, kK / 2);  // leaves out half of the sum, and is faster
  add(64, 64, 32, 4, 3, kK);       // the first once more
  profiler::OutputCheck check = *profiler::OutputCheck::make({a, b, c});
  profiler::TuneRecords records([](const std::string& text) { ADD_FAILURE() << text; });
  profiler::TuneOptions options;
  options.budget_s = 60;
  options.check = &check;
  options.records = &records;
  options.record_key = profiler::record_key(kernel, device, {});
  auto tuned = profiler::tune(device, candidates, options);
  ASSERT_TRUE(tuned.ok()) << tuned.error().message;
  const TuneResult& r = *tuned;
  for (size_t i = 0; i < r.rows.size(); ++i)
    printf("%-40s %-8s %8.2f us, %3zu samples, %d registers, %lld B shared, %s\n", r.rows[i].config.c_str(),
           std::string(profiler::name(r.rows[i].state)).c_str(), r.rows[i].median_us(), r.rows[i].us.size(),
           r.rows[i].registers, static_cast<long long>(r.rows[i].shared_bytes), r.rows[i].reason.c_str());
  printf("%.2f s: %.2f compiling, %.2f measuring\n", r.total_s, r.compile_s, r.measure_s);
  for (size_t i : {0, 1, 2}) EXPECT_EQ(r.rows[i].state, TuneState::kMeasured) << i << ": " << r.rows[i].reason;
  EXPECT_TRUE(r.rows[3].state == TuneState::kFailed || r.rows[3].state == TuneState::kPruned);
  EXPECT_EQ(r.rows[4].state, TuneState::kWrong);
  EXPECT_EQ(r.rows[5].state, TuneState::kPruned);
  EXPECT_TRUE(r.best >= 0 && r.best <= 2);
  EXPECT_GT(r.rows[0].occupancy, 0);
  ASSERT_TRUE(check.restore().ok());
  auto values = *c.to_doubles();
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](double v) { return v == 7; }));
  // Again, from the records.
  auto again = profiler::tune(device, candidates, options);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->from_records);
  EXPECT_EQ(again->best, r.best);
  unsetenv("KILN_CACHE_DIR");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace kiln::runtime
