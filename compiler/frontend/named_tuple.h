// NamedTuple classes as kernels see them: functions whose result is the tuple of their arguments, under the names of
// the fields.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/frontend/frontend.h"

namespace kiln::frontend {

struct NamedTupleField {
  std::string name, default_text;  // empty: it has to be given
};
/// `file` and `line` are those of the class: errors name that place. Its lookup() and default_of() are the caller's to
/// set.
Result<JitFunction> named_tuple(const std::string& name, const std::vector<NamedTupleField>& fields,
                                const std::string& file, int line);
/// Of `class Name(NamedTuple)` with its annotated fields; nullopt for other classes.
Result<std::optional<JitFunction>> named_tuple(const ast::ClassDef& c);
/// Those of `namedtuple("T", ["a", "b"])` and `"a b"`; none where they are not written so.
std::vector<NamedTupleField> named_tuple_fields(const ast::Expr& names);
/// The text that an expression is; null: it is none.
const std::string* text_of(const ast::Expr& e);

}  // namespace kiln::frontend
