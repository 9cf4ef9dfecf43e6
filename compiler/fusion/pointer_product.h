// Products that are read through pointers: their tiles, and what they take by a model.
#pragma once
#include <vector>

#include "compiler/fusion/product_form.h"
#include "compiler/fusion/split.h"

namespace kiln::fusion {

/// The tile of such a product, for as many programs as share its sums (DagNode::splits).
MatmulTile pointer_tile(const DagNode& product, const Machine& machine);

/// Other tiles of the same product worth trying.
std::vector<MatmulTile> other_pointer_tiles(const DagNode& product, const MatmulTile& tile, const Machine& machine);

/// Stages that fit shared memory, and warps, of another tile of such a product.
MatmulTile with_stages(MatmulTile tile, const DagNode& product, const Machine& machine);

/// Registers of a thread that leave room for as many programs as the model reckons with, where ptxas might take more to
/// hold the addresses of copies; 0: as many as it takes.
int most_registers(const DagNode& product, const MatmulTile& tile);

/// What it takes with this tile, in microseconds.
double pointer_product_us(const DagNode& product, const MatmulTile& tile, const Machine& machine);

/// What takes the least time.
SplitTime best_pointer_split(const DagNode& product, const Machine& machine);

}  // namespace kiln::fusion
