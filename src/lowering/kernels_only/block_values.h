#pragma once
#include <string_view>

#include "lowering/kernels_only/block_terms.h"

namespace rlx {

/// Element `j` of a block of the GGUF type of that name, from the expression of its scheme: as f32, with the roundings of its decoder.
ExprId block_value(std::string_view type, const KernelBlock& block, const Index& j);

/// The tables that this reads, each once.
struct BlockTable {
  const void* place;
  std::vector<std::uint16_t> entries;
};
std::vector<BlockTable> block_tables(std::string_view type);

}  // namespace rlx
