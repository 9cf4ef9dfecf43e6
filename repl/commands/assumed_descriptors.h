// The blocks of tensor descriptors that the host makes, which `kiln compile` and `kiln check` must know where nobody
// gave a signature. What tells them, in this order: a hook of a configuration
// (`nargs["a_desc"].block_shape = [nargs["BLOCK_M"], nargs["BLOCK_K"]]`), the descriptor of the first launch
// (`TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K])`), and the steps by which the kernel's offsets move
// (`a_desc.load([pid * BLOCK_M, k])`).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/frontend.h"
#include "repl/commands/assumed_launch.h"

namespace kiln::repl {

/// Parameters that are descriptors of the host, with how many offsets their blocks have: `x.load([i, j])`, here or in
/// functions that they are handed to. Of `x.block_shape` alone it is taken for two.
std::map<std::string, size_t, std::less<>> descriptors_of(const frontend::JitFunction& function);

/// What a size is, by the name of its constexpr parameter.
using SizeOf = std::function<std::optional<int64_t>(std::string_view name)>;

/// The block's size in each of `rank` dimensions; nullopt where nothing tells.
std::vector<std::optional<int64_t>> descriptor_block(const frontend::JitFunction& function, std::string_view param,
                                                     size_t rank, const LaunchFacts& launch, const SizeOf& size_of);

}  // namespace kiln::repl
