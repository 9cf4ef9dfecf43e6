// Puts reads of shared memory in place of the load that brought a tile there.
#pragma once
#include <vector>

#include "compiler/ir/builder.h"

namespace kiln::passes {

/// Whether what is masked off is other than 0, which is what copies fill it with.
bool is_filled(const ir::Op* load);

class RingReader {
 public:
  explicit RingReader(ir::Builder& b) : b_(b) {}

  /// `handle`: where the tile lies. Conversions of the tile, and of what is it transposed, read it as they need it.
  void take(ir::Op* load, ir::Value* handle);

  const std::vector<ir::Value*>& handles() const { return handles_; }
  const std::vector<ir::Op*>& reads() const { return reads_; }

 private:
  ir::Value* read(ir::Value* handle, const ir::Type& type);
  void replace_conversion(ir::Op* convert, ir::Value* handle);
  void take_transposed(ir::Op* trans, ir::Value* handle);

  ir::Builder& b_;
  std::vector<ir::Value*> handles_;
  std::vector<ir::Op*> reads_;
};

}  // namespace kiln::passes
