// The kernels of clusters: their tiles and grids, and their sources.
#pragma once
#include <vector>

#include "compiler/fusion/grouping.h"
#include "compiler/fusion/plan.h"
#include "kiln/result.h"

namespace kiln::fusion {

inline constexpr std::string_view kOwnProgram = "tl.program_id(0)";

struct WriteRequest {
  const Graph& graph;
  const Dag& dag;
  const Grouping& grouping;
  const Cluster& cluster;
  const Machine& machine;
  const std::vector<int>& value_of;        // per node of the dag: its value in the plan
  std::string_view program = kOwnProgram;  // of elements and rows: which of the programs runs, or a parameter for it
  int64_t rows_of_total = 0;               // of rows: what each program reduces, behind those that made their parts
  int totals = -1;                         // of a scan whose parts look back: the value for their totals
};

/// Fills the group's kernel, source, arguments, grid and warps. Elements, or rows by write_rows().
Status write_loops(const WriteRequest& request, Group& group);
/// Rows with their reductions, and scans.
Status write_rows(const WriteRequest& request, Group& group);
/// A product and its epilogue.
Status write_product(const WriteRequest& request, Group& group);

/// "add_gelu": the operations in words, for names of kernels.
std::string cluster_name(const WriteRequest& request);
/// The comment at the top of a source: what it computes, of which shapes.
std::string cluster_comment(const WriteRequest& request);

/// Rounded up to a power of two, at least 1.
int64_t power_of_two(int64_t n);

}  // namespace kiln::fusion
