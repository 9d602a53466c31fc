#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rlx {

/// What matrix products of f32 compute with. Everything else (norms, softmax, sums, embeddings) keeps the types of the graph.
///   f32    as written
///   bf16   operands rounded to bf16, sums in f32; of an attention also the result
///   f16    products with a weight: the weight rounded to f16, sums in f32; the other operand, and other products, stay f32. It takes half
///          the memory, and half the time of products of few rows, which wait for it. Where a column has a weight beyond 65504, the
///          largest f16, the column is divided by a scale of its own, and its sums multiplied by it. A CPU without instructions that read
///          f16 rounds the same weights, but keeps them as f32
///   int8   products with a weight, which is computed from parameters alone: 8-bit integers with one scale for each column of the weight
///          and, found at run time, a scale and an offset for each row of the other operand, or image of a convolution, after factors from
///          the weight's rows have brought both operands' elements nearer to each other (products that read the same operand share them);
///          sums in i32. An attention is computed as under bf16; other products stay f32. A Calibration (rlx/calibrator.h) replaces what is
///          found at run time
/// A weight is computed from parameters alone. States are none: under f16 and int8 products with them stay f32, as they would be rounded in
/// every run, and their gradients too.
enum class Precision : std::uint8_t { f32, bf16, f16, int8 };
constexpr auto enum_words(Precision) { return std::array<std::string_view, 4>{"f32", "bf16", "f16", "int8"}; }

/// f32, bf16, f16 or int8.
constexpr std::string_view name(Precision precision) { return enum_words(precision)[static_cast<std::size_t>(precision)]; }

/// The precision of that name, if there is one.
constexpr std::optional<Precision> precision_named(std::string_view name) {
  const auto words = enum_words(Precision{});
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == name) return static_cast<Precision>(i);
  return std::nullopt;
}

}  // namespace rlx
