// The tiles of pointwise and row kernels: elements, rows, columns and warps of a program. Numbers alone.
#pragma once
#include <cstdint>

#include "compiler/fusion/plan.h"

namespace kiln::fusion {

inline constexpr int64_t kMostColumns = 32768;   // of a row that a program holds at once
inline constexpr int64_t kShortRow = 1024;       // one warp or two take it
inline constexpr int64_t kAgainColumns = 16384;  // of a row that is reloaded rather than kept in registers
inline constexpr int64_t kShortCrossing = 8;     // of a dimension that is not worth a way through shared memory

/// Elements of a program of a pointwise kernel, and its warps.
struct ElementTile {
  int64_t elements;
  int warps;
};
/// `widest` is the largest element in bytes, `scattered` how many loads fetch single elements.
ElementTile element_tile(const Machine& machine, int64_t count, int widest, int64_t scattered);

/// Rows by columns of a program that copies between two orders of memory, through shared memory.
struct CrossingTile {
  int64_t rows, columns;
  int warps;
};
/// `longest` is how many rows lie in one run.
CrossingTile crossing_tile(const Machine& machine, int64_t n_rows, int64_t n_cols, int64_t longest);

/// Columns by which rows of `n_cols` are cut, so that the least lies beyond their ends.
int64_t column_block(const Machine& machine, int64_t n_cols);

/// Warps of a multiprocessor that hide what they wait for.
inline constexpr int64_t kWarpsPerProcessor = 16;

/// What a row kernel does.
struct RowWork {
  int64_t n_rows, n_cols;
  int64_t splits = 1;         // parts of a row
  int64_t chunk = 0;          // columns of a part, where they are settled
  bool looks_back = false;    // parts of a scan tell each other their totals: each is one tile
  bool across = false;        // such parts are of rows that lie side by side
  bool odd_words = false;     // are_odd_words()
  bool within_words = false;  // halves side by side, whose rows begin within a word
  bool in_runs = false;       // a scan's whole rows are taken in runs of 16 bytes
  bool shifted = false;       // rows that are taken in runs begin within them
  int64_t tensors = 0;        // read along the columns
  int64_t of_rows = 0;        // of these, those that differ from row to row
  int widest = 1;             // element in bytes
  int read = 1;               // of the tensors above
  int64_t bytes = 0;          // of an element of a row: of what is read of it, and stored
  int depth = 1;              // of reductions that need each other
  bool along = true;          // a row's elements are contiguous
  bool windows = false;       // neighbouring rows share most of their elements
  bool stores_rows = false;   // stores something along columns
  bool exponentials = false;  // a softmax's, or other functions that a loop for each reduction would take again
  bool costly = false;        // each element takes functions of many instructions
  bool computes = false;      // instructions take longer than memory
  int divisions = 0;          // exact ones, and roots, of each element
  bool alone = false;         // one program makes all of it, behind a kernel's others
};

struct RowTile {
  int64_t rows = 1, block = 1;
  int64_t run = 1;  // of a part that looks back: neighbours whose sum it waits with; 1 where it holds running values
  int warps = 4;
  int registers = 0;      // of a thread at most; 0: as many as ptxas takes
  bool loop = false;      // over blocks of columns
  bool again = false;     // each part between two reductions reads the row again
  bool ahead = false;     // the loop loads a block while it scans the one before, through shared memory
  bool known = false;     // the loop's end is a constexpr, for ptxas to see all of its loads
  bool unrolled = false;  // the loop is written out: where each column lies is a number then
  int64_t held = 0;       // columns of the block that may hold any of the row, where that is known to be fewer
};
RowTile row_tile(const Machine& machine, const RowWork& work);
/// Of a running sum.
RowTile scan_tile(const Machine& machine, const RowWork& work);

}  // namespace kiln::fusion
