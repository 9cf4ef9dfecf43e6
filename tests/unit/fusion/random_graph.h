// Random expressions with inputs: every kind of operation, odd sizes, views, broadcasts, and now and then no elements.
#pragma once
#include <random>

#include "tests/unit/fusion/run_plan.h"

namespace kiln::fusion::testing {

Problem random_problem(std::mt19937& random, const Device& device, int operations);

}  // namespace kiln::fusion::testing
