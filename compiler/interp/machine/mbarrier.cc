#include "compiler/interp/machine/mbarrier.h"

#include <fmt/format.h>

namespace kiln::interp {

std::string Mbarrier::describe() const {
  std::string text = fmt::format("phase {} has {} of {} arrivals", phase_, arrivals_, count_);
  if (announced_ > 0) {
    text += fmt::format(", and {} of {} announced bytes have landed", landed_, announced_);
    if (started_ < announced_) text += fmt::format(" (loads of {} have started)", started_);
  }
  return text;
}

std::string Mbarrier::arrive(const Knowledge& knows, int64_t bytes) {
  if (arrivals_ == count_) return "an arrival too many at an mbarrier: " + describe();
  ++arrivals_;
  announced_ += bytes;
  arrived_.join(knows);
  if (arrivals_ == count_ && started_ > announced_)
    return fmt::format("{} bytes are on their way to an mbarrier where {} are announced", started_, announced_);
  end_phase_if_complete();
  return "";
}

std::string Mbarrier::start_load(int64_t bytes, bool announced) {
  if ((announced || arrivals_ == count_) && started_ + bytes > announced_)
    return fmt::format("{} bytes are on their way to an mbarrier where {} are announced and {} of these taken", bytes,
                       announced_, started_);
  started_ += bytes;
  loads_started_ = phase_ + 1;
  return "";
}

void Mbarrier::land(int64_t bytes) {
  landed_ += bytes;
  arrived_.seen[loads_] = phase_ + 1;
  end_phase_if_complete();
}

void Mbarrier::end_phase_if_complete() {
  if (arrivals_ < count_ || landed_ < announced_) return;
  ended_.join(arrived_);
  ++phase_;
  arrivals_ = announced_ = started_ = landed_ = 0;
}

}  // namespace kiln::interp
