// Plans carried out: each kernel compiled and launched on a device, outputs compared with the float64 evaluation.
#pragma once
#include <string>
#include <vector>

#include "compiler/fusion/plan.h"
#include "kiln/kernel.h"
#include "tests/unit/fusion/evaluate.h"

namespace kiln::fusion::testing {

/// An expression with its inputs: tensors on the device, and their elements.
struct Problem {
  Graph graph;
  std::vector<Tensor> tensors;                // per node; empty where it is no input
  std::vector<std::vector<double>> elements;  // per node
};

/// A tensor node of `elements` (row-major) whose memory has those strides within a buffer that is poisoned elsewhere.
int add_input(Problem& p, const Device& device, DType dtype, const Shape& shape, const Shape& strides, int64_t offset,
              const std::vector<double>& elements, std::string name = {});

Machine host_machine();
Machine hopper_machine();

/// Launches the plan's kernels on poisoned buffers. The outputs are views.
Result<std::vector<Tensor>> run(const Plan& plan, const Problem& problem, const Device& device);

/// The plan with one of a group's other configurations.
Plan configured(Plan plan, size_t group, const Configuration& configuration);

/// The arguments of one group's kernel.
std::vector<std::optional<Arg>> arguments(const Group& group, const std::vector<Tensor>& values);

/// Fails the test where an output is further from the evaluation than its bound, and gives the share of elements whose
/// bound is tight; one element may be loose, which is much of a short output.
double expect_close(const Problem& problem, const std::vector<Tensor>& outputs, const std::string& what);
/// The same, with the evaluation.
double expect_close(const Problem& problem, const std::vector<Elements>& want, const std::vector<Tensor>& outputs,
                    const std::string& what);

}  // namespace kiln::fusion::testing
