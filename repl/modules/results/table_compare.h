// What differs between two tables of the same command.
#pragma once
#include "repl/modules/results/table_object.h"

namespace kiln::script {

/// A row for each number that differs between rows of the same name (the first column that is a text), and for each row
/// that only one of them has. kValue when they have no column of numbers in common.
Ref<TableObject> table_changes(Interp& in, const TableObject& earlier, const TableObject& now);

}  // namespace kiln::script
