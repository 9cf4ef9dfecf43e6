// A product the other way round: the rows of one are the columns of the other.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

/// Tile stage, 2-D: dot(a, b, c) becomes trans(dot(trans b, trans a, trans c)), with dot's attributes, and the new dot
/// is returned. A sum that the enclosing loop carries is carried transposed, so that nothing is transposed in the loop:
///
///   %sum = for … iter (%acc = %init) {              %t = for … iter (%acc = trans %init) {
///     %next = dot %a, %b, %acc                 →      %next = dot trans %b, trans %a, %acc
///     yield %next                                     yield %next
///   }                                               }
///                                                   %sum = trans %t
ir::Op* transpose_product(ir::Module& module, ir::Op* dot);

}  // namespace kiln::passes
