#include "compiler/lower/shared/line_info.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include "compiler/lower/shared/llvm_version.h"

namespace kiln::lower {

namespace {

/// The text of the first op that has one.
SourceRange first_range(const ir::Block& block) {
  for (const ir::Op* op : block) {
    if (op->range.text) return op->range;
    for (const ir::Block* region : op->regions)
      if (SourceRange r = first_range(*region); r.text) return r;
  }
  return {};
}

}  // namespace

LineInfo::LineInfo(llvm::Module& module, llvm::Function& fn, const ir::Module& source,
                   llvm::DICompileUnit::DebugEmissionKind kind)
    : module_(module), builder_(module) {
  const SourceRange first = first_range(*source.body());
  main_text_ = first.text;
  if (!main_text_) return;
  llvm::DIFile* file = builder_.createFile(main_text_->file_name(), ".");
  llvm::DICompileUnit* unit = builder_.createCompileUnit(SourceLanguage(llvm::dwarf::DW_LANG_Python), file, "kiln",
                                                         /*isOptimized=*/true, "", 0, "", kind);
  const auto line = static_cast<unsigned>(main_text_->line_of(first.begin));
  llvm::DISubroutineType* type = builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
  function_ = builder_.createFunction(unit, source.name, source.name, file, line, type, line, llvm::DINode::FlagZero,
                                      llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  fn.setSubprogram(function_);
  scopes_[main_text_] = function_;
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
}

llvm::DIScope* LineInfo::scope_of(const SourceText* text) {
  auto [it, fresh] = scopes_.try_emplace(text, nullptr);
  if (fresh) it->second = builder_.createLexicalBlockFile(function_, builder_.createFile(text->file_name(), "."));
  return it->second;
}

void LineInfo::at(llvm::IRBuilderBase& b, SourceRange range) {
  if (!function_ || !range.text) return;
  const auto line = static_cast<unsigned>(range.text->line_of(range.begin));
  const auto column = static_cast<unsigned>(range.text->column_of(range.begin));
  b.SetCurrentDebugLocation(llvm::DILocation::get(module_.getContext(), line, column, scope_of(range.text)));
}

void LineInfo::finish() { builder_.finalize(); }

}  // namespace kiln::lower
