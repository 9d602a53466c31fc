// Values in blocks, as GGUF files hold them: their decoding, and products with weights in blocks.
#include <cstring>

#include "ops/wide.h"
#include "quant/format.h"

namespace rlx {
namespace {

const BlockFormat& format_named(std::string_view op, const std::string& type) {
  const BlockFormat* const format = find_block_format(type);
  if (!format) fail("rlx.{}: there is no block type '{}' (rlx inspect FILE lists those of a file)", op, type);
  return *format;
}

/// The size that `bytes` bytes of blocks decode to.
Dim decoded_size(std::string_view op, const BlockFormat& format, const Type& blocks) {
  const auto count = blocks.dtype == u8 && !blocks.shape.empty() ? Dim::exact_div(blocks.shape.back(), format.bytes) : std::nullopt;
  if (!count) fail("rlx.{}: blocks {} of {} (allowed: u8[..., a multiple of {}])", op, blocks.to_string(), format.name, format.bytes);
  return *count * format.values;
}

struct DecodeBlocks {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "decode_blocks";
  static constexpr std::string_view formula = "the f32 values of blocks of a GGUF type, bytes [..., blocks * bytes of one]";
  static constexpr std::string_view not_differentiable = "its operand is bytes";
  std::string type = "Q8_0";
  static auto fields() { return Fields<&DecodeBlocks::type>{}; }
  static Type infer(const DecodeBlocks& op, const Type& blocks) {
    Type result{f32, blocks.shape};
    const Dim size = decoded_size(name, format_named(name, op.type), blocks);
    result.shape.back() = size;
    return result;
  }
  static void evaluate(const DecodeBlocks& op, std::span<const Array> x, std::span<Array> y) {
    const BlockFormat& format = format_named(name, op.type);
    std::vector<float> values(static_cast<std::size_t>(y[0].size()));
    format.decode(x[0].bytes().data(), values.data(), y[0].size());
    std::memcpy(y[0].mutable_bytes().data(), values.data(), values.size() * sizeof(float));
  }
  static std::vector<Sample> samples() {
    // Only the codes of Q8_0 are any bytes; the scales of these must be numbers, which bytes of up to 63 are.
    return {{{{{u8, {3, 68}}, 0, 63}}, attrs_of(DecodeBlocks{"Q8_0"})}, {{{{u8, {2, 144}}, 0, 63}}, attrs_of(DecodeBlocks{"Q4_K"})}};
  }
};
const Op<DecodeBlocks> decode_blocks_op;

struct BlockDot {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "block_dot";
  static constexpr std::string_view formula =
      "x W^T, W = decode_blocks(blocks); with int8, x is first rounded to 8 bits with a scale for each 32 neighbours";
  std::string type = "Q8_0";
  bool int8 = true;
  static auto fields() { return Fields<&BlockDot::type, &BlockDot::int8>{}; }
  static constexpr std::int64_t group = 32;  // values that share a scale

  /// x as the products of 8-bit codes with a scale for each 32 neighbours on the last axis: the largest |x| is 127 scales.
  static Value in_8_bits(Value x) {
    Dims shape = x.shape();
    shape.back() = *Dim::exact_div(shape.back(), group);
    shape.push_back(group);
    Value groups = reshape(x, shape), most = reduce_max(abs(groups), {-1}, true);
    Value inverse = select(gt(most, like(most, 0)), 127.0 / most, like(most, 0));
    return reshape(round(groups * inverse) * (most / 127.0), x.shape());
  }
  static Value times_blocks(const BlockDot& op, Value wide, Value blocks, DType dtype) {
    return cast(dot(wide, cast(decode_blocks(blocks, op.type), wide.dtype()), {wide.rank() - 1}, {1}), dtype);
  }
  static Value body(const BlockDot& op, Value x, Value blocks) {
    check_float(name, x);
    const BlockFormat& format = format_named(name, op.type);
    if (blocks.rank() != 2 || x.rank() < 1 || !(decoded_size(name, format, blocks.type()) == x.dim(-1)) ||
        (op.int8 && format.values % group))
      fail("rlx.block_dot: x {}, blocks {} of {} do not fit (allowed: [..., K] and [N, K / {} * {}]{})", x.type().to_string(),
           blocks.type().to_string(), format.name, format.values, format.bytes, op.int8 ? ", for int8 blocks of 32 values" : "");
    return times_blocks(op, op.int8 ? in_8_bits(widen(x)) : widen(x), blocks, x.dtype());
  }
  /// Rounding counts as the identity. Not by the op itself: where it is batched, its jvp is batched with it.
  static Values jvp(const BlockDot& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    return {times_blocks(op, widen(dx[0]), x[1], x[0].dtype())};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {3, 64}}}, {{u8, {5, 68}}, 0, 63}}, attrs_of(BlockDot{"Q8_0", true}), 0, false},
            {{{{f32, {2, 3, 256}}}, {{u8, {17, 144}}, 0, 63}}, attrs_of(BlockDot{"Q4_K", true}), 0, false},
            {{{{f32, {3, 64}}}, {{u8, {5, 36}}, 0, 63}}, attrs_of(BlockDot{"Q4_0", false})}};
  }
};
const Op<BlockDot> block_dot_op;

}  // namespace

/// The f32 values (..., count) of `blocks`, u8 (..., bytes): blocks of the GGUF type of that name ("Q4_K") side by side on the last axis.
Value decode_blocks(Operand blocks, std::string type) { return decode_blocks_op({std::move(type)}, blocks); }

/// x [..., K] times the transpose of W [N, K], whose rows are blocks of a GGUF type: u8 [N, bytes]. With `int8`, x is rounded to 8 bits,
/// with a scale for each 32 neighbours on its last axis, for the derivative of which rounding counts as the identity. In x's dtype, summed
/// in f32.
Value block_dot(Operand x, Operand blocks, std::string type, bool int8 /*= true*/) {
  return block_dot_op({std::move(type), int8}, x, blocks);
}

}  // namespace rlx
