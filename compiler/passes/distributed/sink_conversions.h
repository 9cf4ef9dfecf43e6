// Layout conversions of matrices that take more registers than what they convert move from behind the value to in front
// of the first op that needs them.
//
//   %a = load %p : f32[16, 16]{L0}                    %a = load %p : f32[16, 16]{L0}
//   %h = convert_layout %a : f32[16, 16]{L4}          %b = load %q : f32[16, 16]{L0}
//   %b = load %q : f32[16, 16]{L0}               →    %g = convert_layout %b : f32[16, 16]{L5}
//   %g = convert_layout %b : f32[16, 16]{L5}          %s = dot …, %g, …
//   %s = dot …, %g, …                                 %h = convert_layout %a : f32[16, 16]{L4}
//   %t = dot %h, …                                    %t = dot %h, …
//
// The operands of a product hold a row in each of several threads: those of later products would wait in registers, and
// the barriers of each conversion wait for what is loaded.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

/// Within the block of each conversion.
Status sink_conversions(ir::Module& module);

}  // namespace kiln::passes
