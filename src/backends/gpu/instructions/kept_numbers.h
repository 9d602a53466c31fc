#pragma once
#include <string>

#include "rlx/dtype.h"

namespace rlx::gpu {

/// Functions of CUDA C++ for Hopper, behind those of products: keys of a tile of 128 by rows on chip, and values by weights that lanes
/// keep.
std::string kept_products(DType element, int values);

/// Products of warps, and numbers that become factors of them.
std::string warp_numbers();

}  // namespace rlx::gpu
