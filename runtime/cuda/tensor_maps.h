// A kernel's tensor maps: encoded from the arguments of a launch, as the kernel's recipes say.
#pragma once
#include <cuda.h>

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "kiln/result.h"
#include "runtime/cuda/driver.h"
#include "support/tensor_map.h"

namespace kiln::runtime {

/// The maps of one launch: the driver copies them as it takes the launch.
using EncodedMaps = std::shared_ptr<const std::vector<CUtensorMap>>;

class TensorMaps {
 public:
  TensorMaps(std::string kernel, std::span<const TensorMapRecipe> recipes, int num_params)
      : kernel_(std::move(kernel)),
        recipes_(recipes.begin(), recipes.end()),
        num_params_(static_cast<size_t>(num_params)) {}

  int count() const { return static_cast<int>(recipes_.size()); }

  /// One map per recipe. Those of the last arguments are kept, so that the launches of a loop encode nothing.
  /// `empty_tensor(stored)` gives an address for a tensor without elements. kLaunch, naming the tensor: its base, its
  /// strides or its sizes are such that TMA cannot reach it. Thread-safe.
  Result<EncodedMaps> encode(const Driver& driver, const uint64_t* slots,
                             const std::function<Result<uint64_t>(bool)>& empty_tensor);

 private:
  Status encode_one(const Driver& driver, const TensorMapRecipe& recipe, std::span<const uint64_t> slots,
                    const std::function<Result<uint64_t>(bool)>& empty_tensor, CUtensorMap& map) const;

  std::string kernel_;
  std::vector<TensorMapRecipe> recipes_;
  size_t num_params_;
  std::mutex mutex_;
  std::vector<uint64_t> last_slots_;
  EncodedMaps last_;
};

}  // namespace kiln::runtime
