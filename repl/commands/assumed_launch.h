// What the launches of a kernel tell about its parameters, where the kernel's own file has one: the constants that
// `kernel[grid](x, n, BLOCK=128)` hands to it, the sizes that follow from others (`D // 2`), and the element types of
// tensors whose making the text shows (`torch.empty(n, dtype=torch.int32)`). Nothing of the file is run.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/frontend.h"

namespace kiln::repl {

struct LaunchFacts {
  template <class Value>
  using ByParameter = std::map<std::string, Value, std::less<>>;
  ByParameter<frontend::Global> constants;  // what the text gives
  ByParameter<int64_t> sizes;               // what follows from sizes that only a run would tell
  ByParameter<std::string> elements;        // "i32", as signatures name it, of what a tensor has
  std::set<std::string, std::less<>> floats;
  /// The sides of a descriptor's block: the text of each, and its value where that does not depend on a run.
  struct Side {
    const ast::Expr* text;
    std::optional<int64_t> value;
  };
  ByParameter<std::vector<Side>> blocks;
};

/// Of the first launch in the file. A size that the text does not tell is `size`; where others are computed from it it
/// is at least 128, so that halves and quarters of it are still sizes of tiles.
LaunchFacts launch_facts(const frontend::JitFunction& kernel, int64_t size);

}  // namespace kiln::repl
