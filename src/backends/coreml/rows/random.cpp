// Philox4x32-10 (see base/philox.h) in bytes, as CoreML's integers have a sign, and products of them no high half: the bits are those of
// every device. A word of `n` blocks is [4, n] of i32, the lowest byte first.
#include <functional>

#include "backends/coreml/operations.h"
#include "base/philox.h"

namespace rlx::coreml {
namespace {

/// The high and the low word of products. Columns of products of bytes are below 2^18.
std::pair<Tensor, Tensor> product_with(Body& out, std::uint32_t factor, const Tensor& x) {
  constexpr std::int64_t columns = 8, bytes = 4;
  Sizes matrix;
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t byte = 0; byte < bytes; ++byte)
      matrix.push_back(column < byte || column - byte >= bytes ? 0 : factor >> (8 * (column - byte)) & 0xFF);
  const Tensor sums = matmul(out, out.constant({columns, bytes}, matrix), x);
  Tensors low, high;
  std::optional<Tensor> carry;
  for (std::int64_t column = 0; column < columns; ++column) {
    Tensor sum = cut(out, sums, 0, column, column + 1);
    if (carry) sum = binary(out, "add", sum, *carry);
    (column < bytes ? low : high).push_back(binary(out, "mod", sum, number(sum, 256)));
    carry = binary(out, "floor_div", sum, number(sum, 256));
  }
  return {concat(out, high, 0), concat(out, low, 0)};
}

/// One word of each number: x [n] or [1] of i32.
Tensor as_bytes(Body& out, const Tensor& x) {
  Tensors rows;
  for (const Tensor& byte : bytes_of(out, x, 32)) rows.push_back(reshape(out, byte, {1, x.shape[0]}));
  return concat(out, rows, 0);
}

/// [n, 1] of i32.
Tensor as_number(Body& out, const Tensor& bytes) {
  Tensors columns;
  for (std::int64_t byte = 0; byte < 4; ++byte) columns.push_back(reshape(out, cut(out, bytes, 0, byte, byte + 1), {bytes.shape[1], 1}));
  return integer_of(out, columns);
}

Tensors random_bits(const Call& c) {
  const auto exclusive_or = [&](const Tensor& a, const Tensor& b) { return looked_up<std::bit_xor<>>(c.out, a, b); };
  const Dim count = product(c.shape());
  const Dim blocks = count.is_static() ? Dim((count.value() + 3) / 4) : count;
  const Tensor none = filled(c.out, Element::i32, {4, blocks}, 0);
  std::array<Tensor, 4> words{as_bytes(c.out, line(c.out, blocks)), none, none, none};
  std::array<Tensor, 2> key{cut(c.out, c.x[0], 0, 0, 1), cut(c.out, c.x[0], 0, 1, 2)};
  for (int round = 0; round < philox::rounds; ++round) {
    const auto [high0, low0] = product_with(c.out, philox::multipliers[0], words[0]);
    const auto [high1, low1] = product_with(c.out, philox::multipliers[1], words[2]);
    words = {exclusive_or(exclusive_or(high1, words[1]), as_bytes(c.out, key[0])), low1,
             exclusive_or(exclusive_or(high0, words[3]), as_bytes(c.out, key[1])), low0};
    for (std::size_t i = 0; i < key.size(); ++i)
      key[i] = binary(c.out, "add", key[i], Immediate(static_cast<int>(philox::key_steps[i])));  // wraps
  }
  Tensors columns;
  for (const Tensor& word : words) columns.push_back(as_number(c.out, word));
  const Tensor all = reshape(c.out, concat(c.out, columns, 1), {blocks * 4});
  return {reshape(c.out, cut(c.out, all, 0, 0, count), c.shape())};
}

}  // namespace

Rows random_rows() {
  static constexpr Row<Rule> rows[] = {{"random_bits", random_bits}};
  return rows;
}

}  // namespace rlx::coreml
