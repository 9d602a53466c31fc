// Products with weights in blocks: those that MLX's affine form holds exactly are packed anew once, and multiplied as they are.
#include <algorithm>

#include "backends/mlx/library/call.h"
#include "quant/block.h"
#include "quant/small_blocks.h"
#include "quant/super_blocks.h"

namespace rlx::mlx {
namespace {

using namespace quant;

constexpr int group = 32;

/// A value is scale * code + bias.
struct Affine {
  float scale, bias;
};

Affine affine_of(const Q4_0&, const BlockBytes& block, int) { return {block.f16(0), -8 * block.f16(0)}; }
Affine affine_of(const Q4_1&, const BlockBytes& block, int) { return {block.f16(0), block.f16(2)}; }
Affine affine_of(const Q5_0&, const BlockBytes& block, int) { return {block.f16(0), -16 * block.f16(0)}; }
Affine affine_of(const Q5_1&, const BlockBytes& block, int) { return {block.f16(0), block.f16(2)}; }
Affine affine_of(const Q8_0&, const BlockBytes& block, int) { return {block.f16(0), -128 * block.f16(0)}; }
Affine affine_of(const PackedScales&, const BlockBytes& block, int g) {
  return {block.f16(PackedScales::scale_at) * real(PackedScales::scale(block, g)),
          -block.f16(PackedScales::min_at) * real(PackedScales::min(block, g))};
}

template <class Scheme>
std::uint32_t code(const BlockBytes& block, int j) {
  if constexpr (std::is_same_v<Scheme, Q8_0>) return static_cast<std::uint32_t>(block.i8(2 + j) + 128);
  else if constexpr (requires { Scheme::high(j); })
    return static_cast<std::uint32_t>(get(block, Scheme::low(j)) | get(block, Scheme::high(j)));
  else return static_cast<std::uint32_t>(get(block, Scheme::low(j)));
}

/// Rows of blocks as MLX has them: codes one behind the other in words, and for each 32 of them a scale and a bias.
template <class Scheme, int bits>
Results packed(const mx::array& blocks) {
  mx::array bytes = mx::contiguous(blocks);
  mx::eval(bytes);
  const int rows = bytes.shape(0), count = static_cast<int>(bytes.shape(1) / Scheme::bytes), groups = count * (Scheme::values / group);
  mx::array words = mx::zeros({rows, groups * bits}, mx::uint32), scales = mx::zeros({rows, groups}, mx::float32);
  mx::array biases = mx::zeros({rows, groups}, mx::float32);
  mx::eval(words, scales, biases);
  auto* const word = words.data<std::uint32_t>();
  auto *const scale = scales.data<float>(), *const bias = biases.data<float>();
  for (std::int64_t i = 0; i < std::int64_t{rows} * groups; ++i) {
    constexpr int groups_of_block = Scheme::values / group;
    const BlockBytes block{bytes.data<std::byte>() + i / groups_of_block * Scheme::bytes};
    const int g = static_cast<int>(i % groups_of_block);
    const Affine affine = affine_of(Scheme{}, block, g);
    scale[i] = affine.scale, bias[i] = affine.bias;
    std::uint64_t open = 0;
    for (int j = 0, filled = 0, to = 0; j < group; ++j) {
      open |= std::uint64_t{code<Scheme>(block, g * group + j)} << filled;
      filled += bits;
      if (filled < 32) continue;
      word[i * bits + to++] = static_cast<std::uint32_t>(open);
      open >>= 32, filled -= 32;
    }
  }
  return std::vector<mx::array>{words, scales, biases};
}

struct Packing {
  std::string_view type;
  int bits;
  Results (*pack)(const mx::array& blocks);
};
constexpr Packing packings[] = {
    {"Q4_0", 4, packed<Q4_0, 4>}, {"Q4_1", 4, packed<Q4_1, 4>}, {"Q5_0", 5, packed<Q5_0, 5>}, {"Q5_1", 5, packed<Q5_1, 5>},
    {"Q8_0", 8, packed<Q8_0, 8>}, {"Q4_K", 4, packed<Q4_K, 4>}, {"Q5_K", 5, packed<Q5_K, 5>},
};
const Packing* packing_of(std::string_view type) {
  const auto* const found = std::ranges::find(packings, type, &Packing::type);
  return found == std::end(packings) ? nullptr : found;
}

/// To 8 bits with a scale for each 32 neighbours, as the op defines it.
mx::array rounded(const mx::array& x) {
  mx::Shape shape = x.shape();
  shape.back() /= group, shape.push_back(group);
  const mx::array groups = mx::reshape(x, shape), most = mx::max(mx::abs(groups), -1, true), zero = number_like(0, x);
  const mx::array inverse = mx::where(mx::greater(most, zero), mx::divide(number_like(127, x), most), zero);
  const mx::array codes = mx::round(mx::multiply(groups, inverse), 0);
  return mx::reshape(mx::multiply(codes, mx::divide(most, number_like(127, x))), x.shape());
}

Results block_dot(const Call& c) {
  const Packing& packing = *packing_of(c.word("type"));
  const Results weights = c.once(1, packing.pack);
  const mx::array x = as(c.x[0], mx::float32);
  const mx::array y = mx::quantized_matmul(c.flag("int8") ? rounded(x) : x, weights[0], weights[1], weights[2], true, group, packing.bits);
  return as(y, c.x[0].dtype());
}

bool is_affine(const Graph& graph, const Node& node) {
  return graph.type(node.operands[0]).dtype != f64 && packing_of(std::get<std::string>(node.attrs[0]));
}

}  // namespace

Rows quantized_rows() {
  static constexpr Row<Rule> rows[] = {
      {"block_dot", block_dot, is_affine, "MLX has no exact form of these blocks: they are decoded once"},
      {"decode_blocks", nullptr, nullptr, "the layouts of GGUF's blocks are the host's: weights are decoded once"},
  };
  return rows;
}

}  // namespace rlx::mlx
