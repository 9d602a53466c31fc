// Values in blocks, as GGUF files hold them: their decoding, and products with weights in blocks.
#include <cstring>

#include "ops/quant/eight_bits.h"
#include "quant/block_format.h"

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

// What the codes of x and their scales stand for.
Value of_eight_bits(Value x) {
  const EightBits parts = EightBits::of(x);
  return reshape(parts.codes * parts.scales, x.shape());
}

struct BlockDot {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "block_dot";
  static constexpr std::string_view formula =
      "x W^T, W = decode_blocks(blocks); with int8, x is first rounded to 8 bits with a scale for each 32 neighbours";
  std::string type = "Q8_0";
  bool int8 = true;
  static auto fields() { return Fields<&BlockDot::type, &BlockDot::int8>{}; }
  static Value times_blocks(const BlockDot& op, Value wide, Value blocks, DType dtype) {
    return cast(dot(wide, cast(decode_blocks(blocks, op.type), wide.dtype()), {wide.rank() - 1}, {1}), dtype);
  }
  static Value body(const BlockDot& op, Value x, Value blocks) {
    check_float(name, x);
    const BlockFormat& format = format_named(name, op.type);
    if (blocks.rank() != 2 || x.rank() < 1 || !(decoded_size(name, format, blocks.type()) == x.dim(-1)) ||
        (op.int8 && format.values % EightBits::group))
      fail("rlx.block_dot: x {}, blocks {} of {} do not fit (allowed: [..., K] and [N, K / {} * {}]{})", x.type().to_string(),
           blocks.type().to_string(), format.name, format.values, format.bytes, op.int8 ? ", for int8 blocks of 32 values" : "");
    if (op.int8) return cast(block_dot(of_eight_bits(widen(x)), blocks, op.type, false), x.dtype());
    return times_blocks(op, widen(x), blocks, x.dtype());
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

struct GroupedBlockDot {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "grouped_block_dot";
  static constexpr std::string_view formula =
      "row m of x (M, K) times the transpose of matrix expert[m] of W (E, N, K) = decode_blocks(blocks); expert (M) of integers, clamped "
      "to 0..E-1; int8 as in block_dot";
  static constexpr std::array<int, 1> integer_operands{2};
  std::string type = "Q8_0";
  bool int8 = true;
  static auto fields() { return Fields<&GroupedBlockDot::type, &GroupedBlockDot::int8>{}; }

  static Value times_blocks(const GroupedBlockDot& op, Value wide, Value blocks, Value expert, DType dtype) {
    return cast(dot(wide, take(cast(decode_blocks(blocks, op.type), wide.dtype()), expert, 0), {1}, {2}, {0}, {0}), dtype);
  }
  static Value body(const GroupedBlockDot& op, Value x, Value blocks, Value expert) {
    check_float(name, x);
    const BlockFormat& format = format_named(name, op.type);
    if (x.rank() != 2 || blocks.rank() != 3 || expert.rank() != 1 || !is_integer(expert.dtype()) || !(x.dim(0) == expert.dim(0)) ||
        !(decoded_size(name, format, blocks.type()) == x.dim(1)) || (op.int8 && format.values % EightBits::group))
      fail("rlx.grouped_block_dot: x {}, blocks {} of {}, expert {} do not fit (allowed: [M, K], [E, N, K / {} * {}] and integers [M]{})",
           x.type().to_string(), blocks.type().to_string(), format.name, expert.type().to_string(), format.values, format.bytes,
           op.int8 ? ", for int8 blocks of 32 values" : "");
    if (op.int8) return cast(grouped_block_dot(of_eight_bits(widen(x)), blocks, expert, op.type, false), x.dtype());
    return times_blocks(op, widen(x), blocks, expert, x.dtype());
  }
  /// As block_dot's.
  static Values jvp(const GroupedBlockDot& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    return {times_blocks(op, widen(dx[0]), x[1], x[2], x[0].dtype())};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {5, 64}}}, {{u8, {3, 7, 68}}, 0, 63}, {{i32, {5}}, 0, 2}}, attrs_of(GroupedBlockDot{"Q8_0", true}), 0, false},
            {{{{f32, {6, 256}}}, {{u8, {2, 17, 144}}, 0, 63}, {{i64, {6}}, 0, 1}}, attrs_of(GroupedBlockDot{"Q4_K", true}), 0, false},
            {{{{f32, {4, 16}}}, {{u8, {2, 5, 32}}, 0, 63}, {{i32, {4}}, 0, 1}}, attrs_of(GroupedBlockDot{"BF16", false})}};
  }
};
const Op<GroupedBlockDot> grouped_block_dot_op;

}  // namespace

/// The f32 values (..., count) of `blocks`, u8 (..., bytes): blocks of the GGUF type of that name ("Q4_K") side by side on the last axis.
Value decode_blocks(Operand blocks, std::string type) { return decode_blocks_op({std::move(type)}, blocks); }

/// x [..., K] times the transpose of W [N, K], whose rows are blocks of a GGUF type: u8 [N, bytes]. With `int8`, x is rounded to 8 bits,
/// with a scale for each 32 neighbours on its last axis, for the derivative of which rounding counts as the identity. In x's dtype, summed
/// in f32.
Value block_dot(Operand x, Operand blocks, std::string type, bool int8 /*= true*/) {
  return block_dot_op({std::move(type), int8}, x, blocks);
}

/// Row m of x [M, K] times the transpose of matrix expert[m] of W [E, N, K], whose rows are blocks of a GGUF type: u8 [E, N, bytes]; plain
/// types ("BF16") without `int8`, which is as in block_dot. Only the matrices that some row asks for are read.
Value grouped_block_dot(Operand x, Operand blocks, Operand expert, std::string type, bool int8 /*= true*/) {
  return grouped_block_dot_op({std::move(type), int8}, x, blocks, expert);
}

}  // namespace rlx
