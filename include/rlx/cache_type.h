#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "rlx/precision.h"

namespace rlx {

/// The numbers in which a language model keeps the keys and values of the tokens that it has read. States of recurrent layers stay f32.
/// Attention computes with f32 numbers; of 32 tokens and more of a text that run together, unless keys are f32, it may multiply 16-bit
/// integers with a scale for each row, which loses about as much as f16 does.
///   usual  bf16 where the session computes products in bf16, which rounds keys and values so anyway; else f16
///   f32    as they are computed
///   f16    rounded, to 2^-11 of their size: half the memory, and half the bytes that a token behind a long text reads
///   bf16   rounded, to 2^-8 of their size
///   q8     8-bit integers with a scale in f32 for each 32 features of a head (16, or all, where 32 do not divide it), the largest of which
///          is 127: rounded to 1/254 of the largest; 0.28 of the memory of f32
enum class CacheType : std::uint8_t { usual, f32, f16, bf16, q8 };
constexpr auto enum_words(CacheType) { return std::array<std::string_view, 5>{"usual", "f32", "f16", "bf16", "q8"}; }

/// The type of that name, if there is one.
constexpr std::optional<CacheType> cache_type_named(std::string_view name) {
  const auto words = enum_words(CacheType{});
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == name) return static_cast<CacheType>(i);
  return std::nullopt;
}

/// What `usual` stands for; the others stand for themselves.
constexpr CacheType resolved(CacheType type, Precision precision) {
  if (type != CacheType::usual) return type;
  return precision == Precision::bf16 ? CacheType::bf16 : CacheType::f16;
}

constexpr std::string_view name_of(CacheType type) { return enum_words(type)[static_cast<std::size_t>(type)]; }

}  // namespace rlx
