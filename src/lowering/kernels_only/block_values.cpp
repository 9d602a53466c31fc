#include "lowering/kernels_only/block_values.h"

#include <algorithm>

#include "quant/schemes.h"

namespace rlx {
namespace {

template <class... Scheme>
ExprId value_among(quant::SchemeList<Scheme...>, std::string_view type, const KernelBlock& block, const BlockInteger& j) {
  ExprId value = -1;
  const auto take = [&]<class S>(const S*) {
    if (S::name == type) value = S::value(block, j).term().id();
  };
  (take(static_cast<const Scheme*>(nullptr)), ...);
  if (value < 0) fail_internal("blocks: no scheme '{}'", type);
  return value;
}

}  // namespace

ExprId block_value(std::string_view type, const KernelBlock& block, const Index& j) {
  return value_among(quant::Schemes{}, type, block, BlockInteger(block, j));
}

std::vector<BlockTable> block_tables(std::string_view type) {
  std::vector<BlockTable> tables;
  Kernel kernel;
  KernelBlock block{&kernel, [&](const Index&) { return kernel.constant(0, u8); }, {}};
  block.entry = [&](const void* place, std::span<const std::uint16_t> entries, const Index&) {
    if (std::ranges::none_of(tables, [&](const BlockTable& known) { return known.place == place; }))
      tables.push_back({place, {entries.begin(), entries.end()}});
    return kernel.constant(0, u16);
  };
  block_value(type, block, Index(0));
  return tables;
}

}  // namespace rlx
