#include "quant/block_format.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "quant/block.h"
#include "quant/grid_blocks.h"
#include "quant/plain.h"
#include "quant/small_blocks.h"
#include "quant/super_blocks.h"
#include "quant/ternary.h"

namespace rlx {
namespace {

using namespace quant;

template <class Scheme>
constexpr BlockFormat format_of() {
  BlockFormat format{Scheme::name, Scheme::id, Scheme::values, Scheme::bytes, nullptr, Scheme::encode};
  if constexpr (Scheme::values == 1) format.decode = Scheme::decode;
  else format.decode = decode_blocks<Scheme>;
  return format;
}

constexpr BlockFormat formats[] = {
    format_of<F32>(),    format_of<F16>(),   format_of<Q4_0>(),    format_of<Q4_1>(),   format_of<Q5_0>(),    format_of<Q5_1>(),
    format_of<Q8_0>(),   format_of<Q8_1>(),  format_of<Q2_K>(),    format_of<Q3_K>(),   format_of<Q4_K>(),    format_of<Q5_K>(),
    format_of<Q6_K>(),   format_of<Q8_K>(),  format_of<IQ2_XXS>(), format_of<IQ2_XS>(), format_of<IQ3_XXS>(), format_of<IQ1_S>(),
    format_of<IQ4_NL>(), format_of<IQ3_S>(), format_of<IQ2_S>(),   format_of<IQ4_XS>(), format_of<I8>(),      format_of<I16>(),
    format_of<I32>(),    format_of<I64>(),   format_of<F64>(),     format_of<IQ1_M>(),  format_of<BF16>(),    format_of<TQ1_0>(),
    format_of<TQ2_0>(),  format_of<MXFP4>(), format_of<NVFP4>(),
};

constexpr char upper(char letter) { return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter; }

}  // namespace

std::span<const BlockFormat> block_formats() { return formats; }

const BlockFormat* find_block_format(std::uint32_t id) {
  const BlockFormat* const found = std::ranges::find(formats, id, &BlockFormat::id);
  return found == std::end(formats) ? nullptr : found;
}

const BlockFormat* find_block_format(std::string_view name) {
  const BlockFormat* const found =
      std::ranges::find_if(formats, [&](const BlockFormat& format) { return std::ranges::equal(format.name, name, {}, {}, upper); });
  return found == std::end(formats) ? nullptr : found;
}

}  // namespace rlx
