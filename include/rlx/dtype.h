#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rlx {

/// Element types. i4 and u4 are packed two to a byte, low nibble first; complex are (re, im) pairs.
enum class DType : std::uint8_t {
  f32,
  f16,
  bf16,
  f64,
  f8e4m3,
  f8e5m2,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  i4,
  u4,
  boolean,
  c64,
  c128,
};

inline constexpr DType f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16, f64 = DType::f64, f8e4m3 = DType::f8e4m3,
                       f8e5m2 = DType::f8e5m2, i8 = DType::i8, i16 = DType::i16, i32 = DType::i32, i64 = DType::i64, u8 = DType::u8,
                       u16 = DType::u16, u32 = DType::u32, u64 = DType::u64, i4 = DType::i4, u4 = DType::u4, boolean = DType::boolean,
                       c64 = DType::c64, c128 = DType::c128;

enum class DTypeClass : std::uint8_t { floating, signed_int, unsigned_int, boolean, complex };

struct DTypeInfo {
  std::string_view name;
  int bits;
  DTypeClass kind;
};

inline constexpr std::array<DTypeInfo, 19> dtype_table{{
    {"f32", 32, DTypeClass::floating},     {"f16", 16, DTypeClass::floating},     {"bf16", 16, DTypeClass::floating},
    {"f64", 64, DTypeClass::floating},     {"f8e4m3", 8, DTypeClass::floating},   {"f8e5m2", 8, DTypeClass::floating},
    {"i8", 8, DTypeClass::signed_int},     {"i16", 16, DTypeClass::signed_int},   {"i32", 32, DTypeClass::signed_int},
    {"i64", 64, DTypeClass::signed_int},   {"u8", 8, DTypeClass::unsigned_int},   {"u16", 16, DTypeClass::unsigned_int},
    {"u32", 32, DTypeClass::unsigned_int}, {"u64", 64, DTypeClass::unsigned_int}, {"i4", 4, DTypeClass::signed_int},
    {"u4", 4, DTypeClass::unsigned_int},   {"bool", 8, DTypeClass::boolean},      {"c64", 64, DTypeClass::complex},
    {"c128", 128, DTypeClass::complex},
}};

constexpr const DTypeInfo& info(DType t) { return dtype_table[static_cast<std::size_t>(t)]; }
constexpr std::string_view name(DType t) { return info(t).name; }
constexpr bool is_float(DType t) { return info(t).kind == DTypeClass::floating; }
constexpr bool is_complex(DType t) { return info(t).kind == DTypeClass::complex; }
constexpr bool is_bool(DType t) { return t == DType::boolean; }
constexpr bool is_signed_int(DType t) { return info(t).kind == DTypeClass::signed_int; }
constexpr bool is_unsigned_int(DType t) { return info(t).kind == DTypeClass::unsigned_int; }
constexpr bool is_integer(DType t) { return is_signed_int(t) || is_unsigned_int(t); }
constexpr bool is_packed(DType t) { return info(t).bits < 8; }

/// Bytes that `count` elements occupy in memory; packed 4-bit rows are rounded up to whole bytes.
constexpr std::int64_t bytes_for(DType t, std::int64_t count) { return is_packed(t) ? (count + 1) / 2 : count * (info(t).bits / 8); }

/// The type of that name, such as "bf16"; nothing for any other name.
std::optional<DType> parse_dtype(std::string_view name);

/// The type that both operands are converted to before an arithmetic op; one commutative table. Floats win over integers,
/// the wider wins within a class, f16 with bf16 gives f32, a signed with an unsigned integer the next wider signed one.
DType promote(DType a, DType b);

}  // namespace rlx
