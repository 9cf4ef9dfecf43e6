// What the session's files share: running something of its interpreter, and finding a value by its name.
#pragma once
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "kiln/result.h"
#include "repl/script/interp/interp.h"
#include "support/diag.h"

namespace kiln::script {

/// Runs something of the interpreter and turns what it throws into a Diagnostic.
template <class F>
Status guarded(Interp& in, F&& run) {
  struct Forget {
    Interp& in;
    ~Forget() { in.set_where({}); }  // the text may go now
  } forget{in};
  try {
    run();
  } catch (ScriptError& e) {
    auto* raised = e.exception.get<Instance>();
    if (!raised || !raised->type->derives_from(in.exception_type("SystemExit").get())) {
      in.add_causes(e);
      return std::move(e.diagnostic);
    }
    try {
      in.exit_code = in.exit_status(e.exception);
    } catch (ScriptError& in_its_text) {
      return std::move(in_its_text.diagnostic);
    }
  } catch (const std::bad_alloc&) {
    return error(ErrorKind::kMemory, "the script needs more memory than there is");
  } catch (const std::length_error&) {  // of a container that cannot grow so far
    return error(ErrorKind::kMemory, "the script needs more memory than there is");
  }
  return {};
}

/// The value of "a.b.c", without running anything that a call could do; missing when there is none.
Value look_up(Interp& in, std::string_view path);
/// The value of an expression, which is evaluated.
Result<Value> value_of(Interp& in, std::string expression);

}  // namespace kiln::script
