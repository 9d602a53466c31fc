// Products with weights in blocks: those that a form of MLX holds exactly are packed anew once, and multiplied as they are.
#include <algorithm>

#include "backends/mlx/library/blocks.h"
#include "backends/mlx/library/call.h"
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
  return {block.f16(PackedScales::scale_at) * quant::real(PackedScales::scale(block, g)),
          -block.f16(PackedScales::min_at) * quant::real(PackedScales::min(block, g))};
}

template <class Scheme>
std::uint32_t code(const BlockBytes& block, int j) {
  if constexpr (std::is_same_v<Scheme, Q8_0>) return static_cast<std::uint32_t>(block.i8(2 + j) + 128);
  else if constexpr (requires { Scheme::high(j); })
    return static_cast<std::uint32_t>(get(block, Scheme::low(j)) | get(block, Scheme::high(j)));
  else return static_cast<std::uint32_t>(get(block, Scheme::low(j)));
}

/// `bits` of each code, one behind the other in words.
template <class Scheme, int bits>
void pack_codes(const BlockBytes& block, int first, int count, std::uint32_t* words) {
  std::uint64_t open = 0;
  for (int j = 0, filled = 0; j < count; ++j) {
    open |= std::uint64_t{code<Scheme>(block, first + j)} << filled;
    filled += bits;
    if (filled < 32) continue;
    *words++ = static_cast<std::uint32_t>(open);
    open >>= 32, filled -= 32;
  }
}

/// The sizes of blocks, but for their last axis, and `last`.
mx::Shape with_last(const mx::array& blocks, int last) {
  mx::Shape shape = blocks.shape();
  shape.back() = last;
  return shape;
}

/// How many groups of `group` values the blocks have in a row, and in all.
template <class Scheme>
int groups_of_row(const mx::array& blocks, int group) {
  return static_cast<int>(blocks.shape(-1) / Scheme::bytes * (Scheme::values / group));
}
std::int64_t rows_of(const mx::array& blocks) { return static_cast<std::int64_t>(blocks.size()) / blocks.shape(-1); }

/// Rows of blocks as MLX has them: codes, and for each 32 of them a scale and a bias.
template <class Scheme, int bits>
Results affine(const mx::array& blocks) {
  mx::array bytes = mx::contiguous(blocks);
  const int groups = groups_of_row<Scheme>(blocks, group);
  mx::array words = mx::zeros(with_last(blocks, groups * bits), mx::uint32), scales = mx::zeros(with_last(blocks, groups), mx::float32);
  mx::array biases = mx::zeros(scales.shape(), mx::float32);
  mx::eval(bytes, words, scales, biases);
  for (std::int64_t i = 0; i < rows_of(blocks) * groups; ++i) {
    constexpr int groups_of_block = Scheme::values / group;
    const BlockBytes block{bytes.data<std::byte>() + i / groups_of_block * Scheme::bytes};
    const int g = static_cast<int>(i % groups_of_block);
    const Affine affine = affine_of(Scheme{}, block, g);
    scales.data<float>()[i] = affine.scale, biases.data<float>()[i] = affine.bias;
    pack_codes<Scheme, bits>(block, g * group, group, words.data<std::uint32_t>() + i * bits);
  }
  return std::vector<mx::array>{words, scales, biases};
}

/// The byte of a group's scale as MLX reads it; nothing where it reads another number.
std::optional<std::uint8_t> scale_of(const MXFP4&, const BlockBytes& block, int) {
  const int exponent = block.u8(0);
  return exponent == 255 ? std::nullopt : std::optional(static_cast<std::uint8_t>(exponent));
}
std::optional<std::uint8_t> scale_of(const NVFP4&, const BlockBytes& block, int g) {
  const int bits = block.u8(g);
  if (bits == 255) return std::nullopt;
  return static_cast<std::uint8_t>(bits == 127 ? 0 : bits & 127);
}

/// The same of 4-bit floats, whose scales are of 8 bits; one array of decoded values where a scale is none of MLX's.
template <class Scheme, int small_group>
Results small_floats(const mx::array& blocks) {
  mx::array bytes = mx::contiguous(blocks);
  const int groups = groups_of_row<Scheme>(blocks, small_group), words_of_group = small_group / 8;
  mx::array words = mx::zeros(with_last(blocks, groups * words_of_group), mx::uint32);
  mx::array scales = mx::zeros(with_last(blocks, groups), mx::uint8);
  mx::eval(bytes, words, scales);
  for (std::int64_t i = 0; i < rows_of(blocks) * groups; ++i) {
    constexpr int groups_of_block = Scheme::values / small_group;
    const BlockBytes block{bytes.data<std::byte>() + i / groups_of_block * Scheme::bytes};
    const int g = static_cast<int>(i % groups_of_block);
    const auto scale = scale_of(Scheme{}, block, g);
    if (!scale) return decoded(Scheme::name, blocks);
    scales.data<std::uint8_t>()[i] = *scale;
    pack_codes<Scheme, 4>(block, g * small_group, small_group, words.data<std::uint32_t>() + i * words_of_group);
  }
  return std::vector<mx::array>{words, scales};
}

/// What MLX calls a form that holds blocks exactly. An array alone is decoded values.
struct Form {
  std::string_view type;
  const char* mode;
  int group, bits;
  Results (*pack)(const mx::array& blocks);
};
constexpr Form forms[] = {
    {"Q4_0", "affine", group, 4, affine<Q4_0, 4>},      {"Q4_1", "affine", group, 4, affine<Q4_1, 4>},
    {"Q5_0", "affine", group, 5, affine<Q5_0, 5>},      {"Q5_1", "affine", group, 5, affine<Q5_1, 5>},
    {"Q8_0", "affine", group, 8, affine<Q8_0, 8>},      {"Q4_K", "affine", group, 4, affine<Q4_K, 4>},
    {"Q5_K", "affine", group, 5, affine<Q5_K, 5>},      {"MXFP4", "mxfp4", 32, 4, small_floats<MXFP4, 32>},
    {"NVFP4", "nvfp4", 16, 4, small_floats<NVFP4, 16>},
};
const Form* form_of(std::string_view type) {
  const auto* const found = std::ranges::find(forms, type, &Form::type);
  return found == std::end(forms) ? nullptr : found;
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

/// What is multiplied with blocks.
mx::array factor(const Call& c) {
  const mx::array x = as(c.x[0], mx::float32);
  return c.flag("int8") ? rounded(x) : x;
}

std::optional<mx::array> biases_of(const Results& weights) { return weights.size() > 2 ? std::optional(weights[2]) : std::nullopt; }

/// Operand 1 in its form; decoded where it differs from run to run.
Results weights_of(const Call& c, const Form& form) {
  Results packed = c.once(1, form.pack);
  return packed.empty() ? Results(decoded(form.type, c.x[1])) : packed;
}

Results block_dot(const Call& c) {
  const Form& form = *form_of(c.word("type"));
  const Results weights = weights_of(c, form);
  const mx::array x = factor(c);
  const mx::array y = weights.size() == 1
                          ? mx::matmul(x, mx::transpose(weights[0]))
                          : mx::quantized_matmul(x, weights[0], weights[1], biases_of(weights), true, form.group, form.bits, form.mode);
  return as(y, c.x[0].dtype());
}

/// Rows that each meet the matrix of their expert: others are not read.
Results grouped_block_dot(const Call& c) {
  const Form& form = *form_of(c.word("type"));
  const Results weights = weights_of(c, form);
  const mx::array x = mx::expand_dims(factor(c), 1), expert = clamped(c.x[2], c.x[1].shape(0) - 1);
  const mx::array y = weights.size() == 1 ? mx::gather_mm(x, mx::swapaxes(weights[0], 1, 2), std::nullopt, expert)
                                          : mx::gather_qmm(x, weights[0], weights[1], biases_of(weights), std::nullopt, expert, true,
                                                           form.group, form.bits, form.mode);
  return as(mx::squeeze(y, 1), c.x[0].dtype());
}

Results decode_blocks(const Call& c) { return decoded(c.word("type"), c.x[0]); }

bool has_form(const Graph& graph, const Node& node) {
  return graph.type(node.operands[0]).dtype != f64 && form_of(std::get<std::string>(node.attrs[0]));
}

constexpr std::string_view no_form = "MLX has no exact form of these blocks: they are decoded once";

}  // namespace

Rows quantized_rows() {
  static constexpr Row<Rule> rows[] = {
      {"block_dot", block_dot, has_form, no_form},
      {"grouped_block_dot", grouped_block_dot, has_form, no_form},
      {"decode_blocks", decode_blocks},
  };
  return rows;
}

}  // namespace rlx::mlx
