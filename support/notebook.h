// The cells of notebooks. A notebook is read as one text: its code cells in their order, before each a line that marks
// it. Places in it are told by the cell and the line in the cell: the file of a Place is then "a.ipynb, cell 3".
#pragma once
#include <string>
#include <string_view>

#include "kiln/result.h"

namespace kiln {

/// The text of the line before a cell, without the cell's number. The first code cell is 1, as when all cells run in
/// their order.
inline constexpr std::string_view kCellMark = "# %% cell ";

/// The parts of a Place's file: `cell` is 0 where it is in no notebook.
struct CellPlace {
  std::string file;
  int cell = 0;
};
CellPlace cell_place(const Place& place);

}  // namespace kiln
