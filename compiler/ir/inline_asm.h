// The registers of inline assembly (inline_asm, tl.inline_asm_elementwise): which elements lie in which, and whether
// the constraints, LLVM's, fit.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ir.h"

namespace kiln::ir {

/// The parts of "=r,=&f,r,0,~{memory}", and the letter of each output and input: of an input that is tied to an output
/// that of the output.
struct AsmConstraints {
  std::vector<std::string> written;
  std::vector<char> outputs, inputs;
};

/// How many neighbouring elements one register takes: of a type under 32 bits as many as fill it, if `pack` are there.
int elements_per_register(const Type& element, int pack);
/// Bits of an operand with that constraint; 0 for a letter that is none.
int asm_register_bits(char letter);
/// Of an input that is no register: a constant becomes a part of the text.
bool is_asm_immediate(char letter);

/// The constraints, where they fit `pack` elements of each of the types; `wrong` gets what does not.
AsmConstraints match_asm(std::string_view constraints, std::span<const Type> outputs, std::span<const Type> inputs,
                         int pack, std::string* wrong);

/// The element types of the attribute `outputs`; empty when a name is none.
std::vector<Type> asm_outputs(const Op& op);

}  // namespace kiln::ir
