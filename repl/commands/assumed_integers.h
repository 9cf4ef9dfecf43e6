// Which parameters of a kernel hold integers or truths, and which point to them, as far as its text shows: what is
// loaded through a pointer and then added to an address, bounds a loop or is divided with // is an integer, and what
// masks a load or a store is a truth. An operand of tl.dot has the type of the other one, those of sums in int32 are
// int8, and those of tl.dot_scaled bytes.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/frontend/frontend.h"

namespace kiln::repl {

/// Functions of the language whose first argument is an address.
bool takes_address(std::string_view name);
/// The address of such a call: its first argument, also by its name; or null.
const ast::Expr* address_of(const ast::Call& call);
/// An argument of a call, by its keyword or else its position; or null.
const ast::Expr* argument(const ast::Call& call, std::string_view keyword, size_t position);
/// What a name, or a member of a module or of a class, is to a kernel.
std::optional<frontend::Global> named_global(const frontend::JitFunction& f, const ast::Expr& e);
/// The jit function of the file that a function calls; or null.
std::shared_ptr<const frontend::JitFunction> helper_of(const frontend::JitFunction& f, const ast::Call& call);
/// What the call hands to it, with the names of its parameters.
std::vector<std::pair<std::string_view, const ast::Expr*>> handed_on(const frontend::JitFunction& helper,
                                                                     const ast::Call& call);
/// The name that leads an address: `x` of `x + i * 2 + j`, of `x[None, :]` and of `x.to(…)`.
std::string_view leading_name(const ast::Expr* e);

class IntegerUses {
 public:
  struct Names {
    std::set<std::string, std::less<>> values;     // names whose value is an integer
    std::set<std::string, std::less<>> pointees;   // names that point to integers
    std::set<std::string, std::less<>> truths;     // names whose value is an int1
    std::set<std::string, std::less<>> flags;      // names that point to int1
    std::set<std::string, std::less<>> handles;    // names that point to addresses, as int64
    std::set<std::string, std::less<>> addresses;  // names of addresses
    /// Names that point to halves, fp8 or bytes of tl.dot_scaled, with the type.
    std::map<std::string, std::string, std::less<>> narrow;
    std::map<std::string, std::string, std::less<>> tiles;  // parameters that are tiles of such a type
  };
  using Returned = std::set<size_t>;  // places in what a function returns
  /// The names of a function, parameters among them, where these of its results are integers.
  const Names& of(const frontend::JitFunction& f, const Returned& returned = {});

 private:
  std::map<std::pair<const ast::FunctionDef*, Returned>, Names> names_;
};

}  // namespace kiln::repl
