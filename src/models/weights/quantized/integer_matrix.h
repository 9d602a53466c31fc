#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/half.h"
#include "base/names.h"
#include "models/weights/quantized/integer_codes.h"
#include "models/weights/quantized/scales.h"
#include "quant/block_format.h"
#include "quant/small_blocks.h"
#include "rlx/error.h"

// Matrices of integers with a scale for each group of columns, in the form in which products take them.

namespace rlx::quantized {

/// The shortest block type whose values are exactly d * i for every f16 d and every integer i in lowest..highest; null: none is.
inline const BlockFormat* block_type_of(int lowest, int highest) {
  if (lowest >= -8 && highest <= 7) return find_block_format(quant::Q4_0::name);
  if (lowest >= -16 && highest <= 15) return find_block_format(quant::Q5_0::name);
  if (lowest >= -128 && highest <= 127) return find_block_format(quant::Q8_0::name);
  return nullptr;
}

/// A block of d and 32 integers in the range of its type.
template <class Scheme>
void put_block(std::byte* block, float d, const int (&integers)[32]) {
  std::memset(block, 0, Scheme::bytes);
  quant::put(block, 0, f16_bits(d));
  for (int j = 0; j < 32; ++j) {
    if constexpr (Scheme::id == quant::Q8_0::id) quant::put(block, 2 + j, static_cast<std::int8_t>(integers[j]));
    else if constexpr (Scheme::id == quant::Q5_0::id)
      quant::put(block, Scheme::low(j), integers[j] + 16), quant::put(block, Scheme::high(j), integers[j] + 16);
    else quant::put(block, Scheme::low(j), integers[j] + 8);
  }
}

/// `Codes` as in integer_codes.h. The groups' numbers are below the number of groups that codes and scales have.
template <class Codes>
class IntegerMatrix {
 public:
  IntegerMatrix(std::string name, std::int64_t rows, std::vector<std::int32_t> group_of_column, std::int64_t groups, Codes codes,
                Scales scales)
      : name_(std::move(name)),
        rows_(rows),
        columns_(static_cast<std::int64_t>(group_of_column.size())),
        groups_(groups),
        group_of_column_(std::move(group_of_column)),
        codes_(codes),
        scales_(scales),
        format_(exact_format()) {}

  /// The matrix in blocks that hold its numbers exactly, else as F16, to which each number is rounded. `owner` keeps the bytes alive.
  TensorView tensor(std::shared_ptr<const void> owner) && {
    TensorView view{name_, format_ != nullptr ? f32 : f16, {rows_, columns_}, {}, format_};
    auto matrix = std::make_shared<const IntegerMatrix>(std::move(*this));
    view.make_rows = [matrix, owner = std::move(owner)](std::int64_t first, std::int64_t count, std::byte* to) {
      matrix->make_rows(first, count, to);
    };
    return view;
  }

 private:
  /// Scales must be f16, and the columns of a block of one group. Of the zeros it depends how far numbers reach.
  const BlockFormat* exact_format() const {
    if (columns_ % 32 != 0 || !scales_.are_halves(rows_, groups_)) return nullptr;
    for (std::size_t i = 0; i < group_of_column_.size(); ++i)
      if (group_of_column_[i] != group_of_column_[i / 32 * 32]) return nullptr;
    int lowest = 0, highest = 0;
    for (std::int64_t group = 0; group < groups_; ++group)
      for (std::int64_t row = 0; row < rows_; ++row) {
        const int zero = codes_.zero(row, group);
        lowest = std::min(lowest, codes_.lowest_code() - zero), highest = std::max(highest, codes_.highest_code() - zero);
      }
    return block_type_of(lowest, highest);
  }

  void make_rows(std::int64_t first, std::int64_t count, std::byte* to) const {
    if (format_ == nullptr) return make_halves(first, count, to);
    if (format_->id == quant::Q4_0::id) return make_blocks<quant::Q4_0>(first, count, to);
    if (format_->id == quant::Q5_0::id) return make_blocks<quant::Q5_0>(first, count, to);
    make_blocks<quant::Q8_0>(first, count, to);
  }

  /// Row by row within a block of columns: layouts keep neighbouring rows of one column in the same cache line.
  template <class Scheme>
  void make_blocks(std::int64_t first, std::int64_t count, std::byte* to) const {
    const std::int64_t row_bytes = columns_ / 32 * Scheme::bytes;
    for (std::int64_t block = 0; block < columns_ / 32; ++block) {
      const std::int64_t group = group_of_column_[static_cast<std::size_t>(32 * block)];
      for (std::int64_t i = 0; i < count; ++i) {
        const int zero = codes_.zero(first + i, group);
        int integers[32];
        for (int j = 0; j < 32; ++j) integers[j] = codes_.code(first + i, 32 * block + j) - zero;
        put_block<Scheme>(to + i * row_bytes + block * Scheme::bytes, scales_.at(first + i, group), integers);
      }
    }
  }

  void make_halves(std::int64_t first, std::int64_t count, std::byte* to) const {
    for (std::int64_t column = 0; column < columns_; ++column) {
      const std::int64_t group = group_of_column_[static_cast<std::size_t>(column)];
      for (std::int64_t i = 0; i < count; ++i) {
        const int integer = codes_.code(first + i, column) - codes_.zero(first + i, group);
        put_half(name_, scales_.at(first + i, group) * static_cast<float>(integer), to + 2 * (i * columns_ + column));
      }
    }
  }

  std::string name_;
  std::int64_t rows_, columns_, groups_;
  std::vector<std::int32_t> group_of_column_;
  Codes codes_;
  Scales scales_;
  const BlockFormat* format_;
};

}  // namespace rlx::quantized
