// Which names of a file change in ways that one assignment does not tell.
#pragma once
#include <set>
#include <string>

#include "compiler/ast/ast.h"

namespace kiln::frontend {

struct Changes {
  std::set<std::string, std::less<>> changing;   // by functions, loops or methods, wherever they are in the file
  std::set<std::string, std::less<>> handed_on;  // whose value something else may hold, and change where it can be
};

/// `body` is the file's or that of a function in it, whose own loops count.
/// Whether it makes a list, a dict, or a set.
bool makes_list(const ast::Expr& e);
Changes changes_of(const ast::Body& file, const ast::Body& body);

}  // namespace kiln::frontend
