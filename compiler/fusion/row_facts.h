// What the tile of a row kernel is chosen by: along what memory runs, and what a column of a row takes.
#pragma once
#include <map>

#include "compiler/fusion/loop_writer.h"

namespace kiln::fusion {

class RowFacts : protected LoopWriter {
 public:
  using LoopWriter::LoopWriter;

 protected:
  /// Whether `store` is all that is stored of what is computed from the tensor.
  bool is_for(int store, int tensor) const;

  /// Whether every element is computed from values of its row and of its column, as distances of points are.
  bool is_of_pairs() const;

  /// Whether elements are read, or looked up, for each row and column; else they are computed from what is read of rows
  /// and of columns.
  bool reads_elements() const;

  /// Whether neighbouring rows are windows of the same memory: views that overlap, or elements that are looked up at
  /// places next to each other, as those of a padded image.
  bool is_of_windows() const;

  /// Whether the places of a take vary along this dimension of the rows and along columns, and nothing else is read or
  /// written by whole rows, which would run along columns.
  bool takes_windows(int inner) const;

  /// Whether parts were made for rows that lie side by side.
  bool has_parts_across() const;

  /// Whether memory runs on along the columns of a row; else rows lie side by side, or neither does and threads have
  /// rows of their own, with which no column is read more than once.
  bool runs_along_columns() const;

  RowWork row_work(int64_t n_rows, int64_t n_cols) const;

  /// FLOP of an element's functions that the hardware has no instructions for.
  int functions_of_columns() const;

  /// Whether a row's instructions, as far as its operations tell, take longer than its bytes: an H200 has eight of them
  /// for each byte of its memory, and some go into addresses and masks.
  bool takes_longer_than_memory() const;

  /// Of what is read and written in every column of every row.
  int64_t bytes_of_column() const;

  bool stores_rows() const;

  /// Whether a loop over a row for each reduction and for the results would compute functions more than once.
  bool takes_functions_again() const;

  /// How many reductions lie between each member and the tensors.
  std::map<int, int> depths() const;

  int deepest() const;

  /// The sum of exp(x - max) that shares the operand x of a maximum, so that one loop can find both; -1 when there is
  /// none. It takes two exponentials per element to save a pass over memory: where memory is what rows wait for.
  int exponentials_of(int maximum) const;
};

}  // namespace kiln::fusion
