// Code that is not a file's own text: kernels in its strings, and the cells of notebooks.
#pragma once
#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "support/diag.h"

namespace kiln::repl {

/// A string of a file that is a file of kernels itself, as torch.compile writes them:
/// `add_0 = async_compile.triton('''…@triton.jit…''')`. It need not be Python.
struct KernelText {
  std::string name;  // what the statement assigns to; empty: nothing
  std::string text;  // with empty lines ahead, so that its lines have the file's numbers
};
std::vector<KernelText> kernel_texts(const ast::Module& module);

/// A file's text, of a notebook (.ipynb) its code: its code cells in their order, each behind a line that marks it
/// (support/notebook.h). Lines for IPython (`%…`, `!…`) and cells for other programs (`%%bash`) are comments.
Result<std::string> read_source(const std::string& path);

}  // namespace kiln::repl
