// What pointwise and row kernels have in common: what they read and write, in which order their loops run over
// dimensions, and the lines that take an index apart.
#pragma once
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/fusion/emitter.h"
#include "compiler/fusion/tile_choice.h"
#include "compiler/fusion/writer.h"

namespace kiln::fusion {

/// Dimensions that one index can walk as one, outermost first.
struct Run {
  std::vector<int> dims;
  int64_t size = 1;
};

inline constexpr int64_t kInt32 = int64_t{1} << 31;
inline constexpr int64_t kRepeatedOften = 8;
inline constexpr int64_t kShortRun = 32;  // inner dimensions shorter than this do not fill a tile's columns

class LoopWriter {
 public:
  LoopWriter(const WriteRequest& r, Group& group);

 protected:
  /// Fills the lists of accesses below and widest_.
  void collect();

  /// Whether what is read of its tensor is read at these places alone.
  bool is_read_once(const Access& a) const;

  /// How often an element is read along dimensions that do not change it.
  int64_t repeats(const Access& a) const;

  static bool full(const Access& a) { return std::find(a.strides.begin(), a.strides.end(), 0) == a.strides.end(); }

  /// The access whose order of memory the loops follow: what elements write, what rows read, but for rows that are
  /// looked up.
  const Access& main() const;

  /// Dimensions [begin, end) by decreasing stride of main(); neighbours that every access walks as one are one run.
  std::vector<Run> runs(int begin, int end) const;

  /// Sets kept_ and reduced_.
  void order();

  static int64_t size_of_runs(const std::vector<Run>& runs);

  /// Whether offsets along these dimensions, or the index itself, need 64 bits.
  bool wide(const std::vector<Run>& runs, int64_t slack) const;

  /// Lines that take the index `var` over `runs` apart, and the texts of the dimensions.
  std::vector<std::string> decompose(const std::vector<Run>& runs, const std::string& var, unsigned level);

  /// Which program this is; `wide`: what it is multiplied with passes 32 bits.
  std::string program(bool wide) const { return std::string(r_.program) + (wide ? ".to(tl.int64)" : ""); }

  void lines(const std::vector<std::string>& list);

  /// Writes the source and sets the launch of the group, `programs` along x.
  void finish(int64_t programs, int warps);

  /// A configuration worth trying beside the one of finish(): these constants, launched as `programs` along x.
  void configuration(std::vector<std::pair<std::string, int64_t>> constants, int64_t programs, int warps);

  void store_all();

  /// Starts all loads of a program at once, so that none waits behind a computation or a reduction, as long as their
  /// registers leave room: `each` of a thread for a tensor that varies along columns.
  void load_early(int64_t each, int64_t most);

  /// The rows of a program: one number, or a range. Sets the mask. `pid` is empty where there is one such range.
  std::string row_range(const std::string& pid, int64_t rows, int64_t n_rows);

  // Of scans: scan_lines.cc.

  /// Whether rows begin at addresses that no vector begins at, and all that is read or written by whole rows is so many
  /// elements, one row behind the other: a program then has runs that begin where vectors do.
  bool begins_anywhere(int64_t run, int64_t n_rows, int64_t n_cols) const;
  /// The lines that find a row among them; sets Emitter::runs.
  void begin_runs(const std::string& run, int64_t run_size, int64_t n_rows, int64_t n_cols);
  /// The lines for a tile of columns that begins so many behind the row's first run.
  std::vector<std::string> columns_in_runs(const std::string& col, const std::string& begin, const std::string& inside,
                                           const std::string& block) const;
  /// What a scan joins two elements with, or "" where that is an addition.
  std::string joint_of(const DagNode& scan);
  /// A pattern with the tile and its axis.
  std::string reduction_text(const DagNode& scan);
  std::string reduced_text(const DagNode& scan, const std::string& tile);

  /// Whether a mask at this size would test elements one by one: no wide access ends with it.
  bool is_odd(int64_t size) const { return r_.machine.gpu() && size % 16 != 0; }

  const WriteRequest& r_;
  const Dag& dag_;
  const Cluster& c_;
  Group& group_;
  Emitter e_;
  std::vector<Access> loads_, writes_, all_, early_;
  std::vector<int> stores_;
  std::set<int> looked_up_;  // whose elements are taken from where others say
  std::vector<Run> kept_, reduced_;
  int widest_ = 1;
  std::string rows_name_;
};

}  // namespace kiln::fusion
