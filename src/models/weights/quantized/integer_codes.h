#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Where the published layouts of quantized matrices (rows, columns) keep their codes and zeros: a value is scale * (code - zero), with a
// scale and a zero for each row and group of columns. A row is an output of the layer, a column an input. Sizes are checked by who makes
// these.

namespace rlx::quantized {

/// 32-bit words of a file, which need not be aligned.
struct CodeWords {
  const std::byte* bytes = nullptr;

  std::uint64_t operator[](std::int64_t i) const {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + 4 * i, sizeof word);
    return word;
  }
};

/// `bits` bits from bit `at` on of the words first, first + stride, first + 2 * stride, ..., low bits first; they may lie in two words.
inline int bits_of(CodeWords words, std::int64_t first, std::int64_t stride, std::int64_t at, int bits) {
  const std::int64_t shift = at % 32, word = first + at / 32 * stride;
  const std::uint64_t upper = shift + bits > 32 ? words[word + stride] << 32 : 0;
  return static_cast<int>((words[word] | upper) >> shift & ((1U << bits) - 1));
}

/// Codes without sign.
struct UnsignedCodes {
  int bits = 4;

  int lowest_code() const { return 0; }
  int highest_code() const { return (1 << bits) - 1; }
};

/// GPTQ: the codes of a row lie one behind the other in a column of words (columns * bits / 32, rows), the zeros of a group in a row of
/// words (groups, rows * bits / 32). Source: Frantar et al. 2022, as AutoGPTQ and GPTQModel pack it.
struct GptqCodes : UnsignedCodes {
  CodeWords codes, zeros;
  std::int64_t rows = 0;
  int zero_offset = 1;  // of the format "gptq": stored zeros are less by one, and wrap

  int code(std::int64_t row, std::int64_t column) const { return bits_of(codes, row, rows, column * bits, bits); }
  int zero(std::int64_t row, std::int64_t group) const {
    return (bits_of(zeros, group * (rows * bits / 32), 1, row * bits, bits) + zero_offset) & highest_code();
  }
};

/// AWQ, "gemm": words (columns, rows / 8) and (groups, rows / 8) hold eight rows each, even ones before odd ones. Source: Lin et al. 2023,
/// as AutoAWQ packs it.
struct AwqCodes : UnsignedCodes {
  CodeWords codes, zeros;
  std::int64_t rows = 0;

  int code(std::int64_t row, std::int64_t column) const { return nibble(codes[column * (rows / 8) + row / 8], row); }
  int zero(std::int64_t row, std::int64_t group) const { return nibble(zeros[group * (rows / 8) + row / 8], row); }

 private:
  static int nibble(std::uint64_t word, std::int64_t row) {
    constexpr std::array<int, 8> places{0, 4, 1, 5, 2, 6, 3, 7};
    return static_cast<int>(word >> (4 * places[static_cast<std::size_t>(row % 8)]) & 15);
  }
};

/// compressed-tensors, "pack-quantized": the codes of a row in a row of words (rows, columns * bits / 32); the zeros of a group, if there
/// are any, in a column of words (rows * bits / 32, groups). Both are raised by half their range.
struct PackedCodes : UnsignedCodes {
  CodeWords codes, zeros;
  std::int64_t words_of_row = 0, groups = 0;

  int code(std::int64_t row, std::int64_t column) const { return bits_of(codes, row * words_of_row, 1, column * bits, bits); }
  int zero(std::int64_t row, std::int64_t group) const {
    return zeros.bytes == nullptr ? 1 << (bits - 1) : bits_of(zeros, group, groups, row * bits, bits);
  }
};

/// compressed-tensors, "int-quantized": signed bytes (rows, columns), and zeros (rows, groups), if there are any.
struct ByteCodes {
  const std::byte *codes = nullptr, *zeros = nullptr;
  std::int64_t columns = 0, groups = 0;

  static int lowest_code() { return -128; }
  static int highest_code() { return 127; }
  int code(std::int64_t row, std::int64_t column) const { return static_cast<std::int8_t>(codes[row * columns + column]); }
  int zero(std::int64_t row, std::int64_t group) const {
    return zeros == nullptr ? 0 : static_cast<std::int8_t>(zeros[row * groups + group]);
  }
};

}  // namespace rlx::quantized
