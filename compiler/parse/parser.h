// Python source text → ast. One grammar for kernel files, scripts and single prompt entries.
#pragma once
#include <memory>
#include <string>

#include "compiler/ast/ast.h"

namespace kiln::parse {

/// Parses a whole file. Errors (ErrorKind::kSyntax) say what was expected at the first place that cannot be right.
Result<std::shared_ptr<const ast::Module>> parse_module(std::shared_ptr<const SourceText> source);

/// The same of a file whose kernels alone are wanted: statements that are not supported are kept as such, by their
/// errors, which are told where a kernel has one.
Result<std::shared_ptr<const ast::Module>> parse_kernel_file(std::shared_ptr<const SourceText> source);

/// Parses one expression (a prompt entry, an f-string field).
Result<ast::ExprPtr> parse_expression(std::shared_ptr<const SourceText> source);

/// For the prompt: does this text need further lines (open bracket, open string, block without its blank line)?
bool is_incomplete(std::string_view text);

}  // namespace kiln::parse
