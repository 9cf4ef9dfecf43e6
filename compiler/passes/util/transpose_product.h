// Transposes a product.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

/// Tile stage, 2-D: dot(a, b, c) becomes trans(dot(trans b, trans a, trans c)), with dot's attributes, and the new dot
/// is returned. An accumulator that the enclosing loop carries is carried transposed, so that the loop contains no
/// transposes:
///
///   %sum = for … iter (%acc = %init) {              %t = for … iter (%acc = trans %init) {
///     %next = dot %a, %b, %acc                 →      %next = dot trans %b, trans %a, %acc
///     yield %next                                     yield %next
///   }                                               }
///                                                   %sum = trans %t
ir::Op* transpose_product(ir::Module& module, ir::Op* dot);

}  // namespace kiln::passes
