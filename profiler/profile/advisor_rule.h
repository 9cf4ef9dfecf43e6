// A rule of the advisor: a function of the facts that adds findings.
#pragma once
#include <string>
#include <vector>

#include "profiler/profile/advisor_facts.h"

namespace kiln::profiler {

/// The findings of one rule.
class FindingSink {
 public:
  struct Found {
    double weight;  // of two findings of a rule the heavier one comes first; nanoseconds where that makes sense
    std::string what, evidence, advice;
  };
  void add(double weight, std::string what, std::string evidence, std::string advice) {
    found_.push_back({weight, std::move(what), std::move(evidence), std::move(advice)});
  }
  std::vector<Found>& found() { return found_; }

 private:
  std::vector<Found> found_;
};

namespace rules {
#define KILN_RULE(function, name, severity, seen, means) void function(const Facts& facts, FindingSink& sink);
#include "profiler/profile/advisor_rules.def"
#undef KILN_RULE
}  // namespace rules

}  // namespace kiln::profiler
