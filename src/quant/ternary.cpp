#include "quant/ternary.h"

#include <cstddef>
#include <cstdint>

#include "quant/block.h"
#include "quant/lattice.h"
#include "quant/search.h"
#include "quant/search_lanes.h"
#include "quant/steps.h"

namespace rlx::quant {
namespace {

/// Calls put_code(block, j, code) for the codes 0, 1, 2 of every element.
template <class Scheme, class PutCode>
void encode_ternary(BlockStep<Scheme, lanes>& step, PutCode put_code) {
  using Ternary = Integers<-1, 1>;
  Tile<Scheme::values> tile;
  tile.load(step.x, step.w);
  Lanes scale = magnitude(search_scale<Ternary>(tile, {1, 0.25f, 20}));  // a few large values are clipped
  for (int g = 0; g < lanes; ++g) scale[g] = step.put_f16(g, Scheme::scale_at, scale[g]);
  const Lanes inverse_scale = inverse(scale);
  for (int j = 0; j < Scheme::values; ++j) {
    const Lanes codes = Ternary::code(tile.x[j] * inverse_scale);
    for (int g = 0; g < lanes; ++g) put_code(g, j, static_cast<int>(codes[g]));
  }
}

}  // namespace

void TQ1_0::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_steps<TQ1_0, lanes>(values, importance, blocks, count, [](BlockStep<TQ1_0, lanes>& step) {
    int digits[lanes][codes_bytes] = {};
    encode_ternary(step, [&](int block, int j, int code) {
      digits[block][byte_of(j)] += code * powers[powers.size() - 1 - static_cast<std::size_t>(digit_of(j))];
    });
    for (int g = 0; g < lanes; ++g) {
      for (int i = 0; i < codes_bytes; ++i) {
        constexpr int all_digits = 243;
        put(step.block(g), i, static_cast<std::uint8_t>((digits[g][i] * 256 + all_digits - 1) / all_digits));  // rounded up
      }
    }
  });
}

void TQ2_0::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_steps<TQ2_0, lanes>(values, importance, blocks, count, [](BlockStep<TQ2_0, lanes>& step) {
    encode_ternary(step, [&](int block, int j, int code) { step.put_code(block, j, code); });
  });
}

}  // namespace rlx::quant
