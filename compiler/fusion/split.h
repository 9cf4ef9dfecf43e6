// Work of few programs, taken apart for a machine that has places for more: each part by programs of its own, and then
// what joins the parts. Everything here adds nodes to the DAG before operations are grouped.
#pragma once
#include "compiler/fusion/dag.h"
#include "compiler/fusion/product_form.h"

namespace kiln::fusion {

/// How many programs share the sum over k of each tile of a product, and what it takes so, by the model of its tiles.
struct SplitTime {
  int64_t splits;
  double us;
};

/// Products whose tiles do not fill the multiprocessors: programs share the sum over k of each, and a reduction adds
/// their parts. Pairs that take less with one kernel for both sums stay whole.
void split_products(Dag& dag, const PlanOptions& options);

/// What such a product that is read in blocks takes by the model of its tiles, parts and their sum included.
double product_us(const DagNode& product, const BlockPair& blocks, const Machine& machine);

/// Whether one kernel takes less for two products of one left operand than two kernels, by the model of their tiles.
/// Neither is split.
bool pair_pays(const Dag& dag, const DagNode& first, const DagNode& second, const Machine& machine);

/// A part of a row is a multiple of so many columns: those that a program takes at a time.
inline constexpr int64_t kSplitUnit = 4096;
/// Elements of a row that a program of a GPU scans at once, at most.
inline constexpr int64_t kMostWholeScan = 4 * kSplitUnit;
/// Of rows that lie side by side, so many at most are scanned by a program, so many columns at a time.
inline constexpr int64_t kScanRows = 64;
/// Columns up to which a program of a GPU runs along whole rows that lie side by side: a loop over blocks waits for
/// memory each time, and parts are a second kernel (cumsum of 1300 x 64 float32 on an H200: 6.6 us whole, 9.9 in parts;
/// 1300 x 3000: 27, by a loop 47; 4000 x 512: 18, 26).
inline constexpr int64_t kWholeScan = 4096;
/// Whether a reduction keeps the last dimension: results lie side by side, and a program takes many of them.
bool keeps_last(const DagNode& reduction);
/// In how many parts split_reductions() takes each row of a reduction; 0: it does not. `chained`: another reduction of
/// such rows waits for it, or it for one.
int64_t splits_of_reduction(const Dag& dag, const DagNode& reduction, const Machine& machine, bool chained);
/// Variances of few long rows on a GPU, so that memory is read once: parts with means of their own, and what joins
/// them.
void part_variances(Dag& dag, const Machine& machine);
/// Sums of exponentials of few long rows on a GPU, below their maximum, likewise.
void part_softmaxes(Dag& dag, const Machine& machine);
/// Reductions of few long rows, in two steps: as many parts as occupy the machine, then their sum.
void split_reductions(Dag& dag, const Machine& machine);
/// Whether rows that are scanned lie side by side.
bool lies_across(const DagNode& scan);
/// How many.
int64_t beside_of(const DagNode& scan);
/// Whether such rows are words of so many bytes and begin where no vector does.
bool are_odd_words(int64_t beside, int read);
/// Of a row that begins where no vector does, one of `rows`, parts have so many more columns.
int64_t columns_of_parts(int64_t rows, int64_t columns);
/// So many parts of a scan that looks back have a total of their own, and how many groups of them there are.
int64_t parts_of_group(const DagNode& scan);
int64_t groups_of_parts(const DagNode& scan);
/// The int64 words in which the parts of each row of a scan that looks back tell each other their totals (helpers.def),
/// and those of all rows; 0 for other nodes.
int64_t words_of_row(const DagNode& scan);
int64_t words_of_scan(const DagNode& node);
/// Whether a program of a GPU scans such a row at once, which would take parts of `chunk` elements: where rows leave
/// processors idle, longer ones.
bool is_whole_scan(int64_t rows, int64_t columns, int64_t chunk, int size, const Machine& machine);
/// Whether split_scans() takes the rows of a scan in parts because they are few and long.
bool is_split_scan(const Dag& dag, const DagNode& scan, const Machine& machine);
/// Running sums along few long rows of a GPU, likewise: the total of each part, then the parts' running sums, each from
/// the totals before it.
void split_scans(Dag& dag, const Machine& machine);

}  // namespace kiln::fusion
