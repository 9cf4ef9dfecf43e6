// The driver's own assembler: the same program as the toolkit's, in process, for the GPU at hand, and there when no
// toolkit is. It compiles for linking, so setmaxnreg is ignored (C7504).
#pragma once
#include <functional>
#include <memory>

#include "runtime/cuda/driver.h"
#include "support/assembler.h"

namespace kiln::runtime {

class DriverAssembler : public Assembler {
 public:
  /// `activate` makes the GPU's context current on the calling thread.
  DriverAssembler(std::shared_ptr<const Driver> driver, std::function<Status()> activate)
      : driver_(std::move(driver)), activate_(std::move(activate)) {}

  std::string name() const override;
  int ptx_version() const override;
  Result<Assembled> assemble(std::string_view ptx) const override;

 private:
  Result<Assembled> link(const std::string& ptx) const;

  std::shared_ptr<const Driver> driver_;
  std::function<Status()> activate_;
};

}  // namespace kiln::runtime
