// Source lines of the generated code: .loc directives in PTX, a line table in a host object. Internal to the lowering.
#pragma once
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>

#include <unordered_map>

#include "compiler/ir/ir.h"

namespace kiln::lower {

class LineInfo {
 public:
  LineInfo(llvm::Module& module, llvm::Function& fn, const ir::Module& source,
           llvm::DICompileUnit::DebugEmissionKind kind);

  /// Instructions made by `b` from now on belong to `range`; a range without a text keeps the last one's line.
  void at(llvm::IRBuilderBase& b, SourceRange range);
  /// To be called once, when the function is complete.
  void finish();

 private:
  llvm::DIScope* scope_of(const SourceText* text);

  llvm::Module& module_;
  llvm::DIBuilder builder_;
  llvm::DISubprogram* function_ = nullptr;
  const SourceText* main_text_ = nullptr;
  std::unordered_map<const SourceText*, llvm::DIScope*> scopes_;  // code of another file that was inlined
};

}  // namespace kiln::lower
