// How one chunk of SIMD lanes of a tile is represented while a loop body is emitted. Private to lower/host.
#pragma once
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include <map>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"

namespace kiln::lower::host {

/// The values of one chunk. Uniform: all lanes hold the scalar. Contiguous: lane i holds the scalar + i (pointers: + i
/// elements); only integers and pointers. A chunk of one lane is always uniform.
struct Lanes {
  enum class Form : uint8_t { kUniform, kContiguous, kVector };
  Form form = Form::kUniform;
  llvm::Value* value = nullptr;

  bool is_uniform() const { return form == Form::kUniform; }
  bool is_contiguous() const { return form == Form::kContiguous; }
  auto operator<=>(const Lanes&) const = default;
};
inline Lanes uniform(llvm::Value* v) { return {Lanes::Form::kUniform, v}; }
inline Lanes contiguous(llvm::Value* v) { return {Lanes::Form::kContiguous, v}; }
inline Lanes vector(llvm::Value* v) { return {Lanes::Form::kVector, v}; }

/// Where each lane is in a tile: i32 coordinates by dimension, and the i32 row-major position when it is known. A
/// contiguous position starts at a multiple of the chunk's width.
struct Index {
  ir::Shape shape;
  llvm::SmallVector<Lanes, ir::kMaxRank> at;
  std::optional<Lanes> linear;
};

/// One chunk of lanes of a loop: what has been emitted for it already.
struct Chunk {
  explicit Chunk(unsigned lanes) : width(lanes) {}
  unsigned width;
  std::vector<Index> indices;
  std::map<std::pair<const ir::Value*, size_t>, Lanes> values;

  /// The number of an equal index, which may be a new one.
  size_t intern(Index index);
};

}  // namespace kiln::lower::host
