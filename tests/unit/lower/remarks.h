// What a test says of machine code that the assembler remarks on.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kiln::testing_support {

/// Fails for each remark of the assembler (Cubin::messages, CompiledKernel::warnings): C7504 to C7519 are the ones that
/// cost a kernel of the asynchronous road its speed, and ptxas prints them as mere information.
inline void expect_no_remarks(const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) ADD_FAILURE() << "the assembler says: " << remark;
}

}  // namespace kiln::testing_support
