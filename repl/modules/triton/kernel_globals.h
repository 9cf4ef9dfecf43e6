// What a kernel sees of the script around it: the variables of its text and of the functions around it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/frontend/frontend.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

/// Lets the jit function that is made of `f` look them up, as they are whenever it asks.
void give_globals(Interp& in, Ref<Function> f, frontend::JitFunction& jit);

/// A tuple, list, range or dict: what kernels have as a tuple of constants.
bool is_collection(const Value& v);
using ToGlobal = std::function<std::optional<frontend::Global>(const Value&)>;
/// What a collection holds, each converted; nullopt where kernels have nothing for one of them. `fields`: a name for
/// each item.
std::optional<frontend::Global> collected(Interp& in, const Value& v, const ToGlobal& convert,
                                          std::vector<std::string> fields = {});

/// A class under @_aggregate: kernels make its objects by a constructor that it keeps. Once: objects are of one class
/// where that is the same.
void make_aggregate(Interp& in, TypeObject& type);

}  // namespace kiln::script
