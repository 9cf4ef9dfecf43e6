// Complex tensors are objects of a class of the library (torch._complex), made of two real tensors. What torch's own
// functions and methods make of them is in the same text, by the same names.
#pragma once
#include "repl/script/interp/interp.h"

namespace kiln::script {

/// Lets torch's functions in a module leave complex arguments to torch._complex, or refuse them by name.
void add_complex(Interp& in, ModuleObject& module);
/// The same of tensors' own methods.
void add_complex_methods(Interp& in);
/// What the function of that name is for complex arguments; nullopt where there are none.
std::optional<Value> of_complex(Interp& in, std::string_view name, const Value* self, CallArgs& args);
/// `a op b`, where `b` is complex and `a` is a real tensor; nullopt where it is not, or torch has no such operation.
std::optional<Value> complex_binary(Interp& in, ast::BinaryOp op, const Value& a, const Value& b, bool reflected);
std::optional<Value> complex_compare(Interp& in, ast::CompareOp op, const Value& a, const Value& b);
/// An error where a real tensor would become complex in place.
void fail_if_complex(Interp& in, const Value& v);
/// A method written in the language, for arguments that are complex too.
Value unless_complex(Interp& in, const Value& function);
/// Of the library.
std::span<const NativeDef> complex_functions();

}  // namespace kiln::script
