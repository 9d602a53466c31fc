#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "kernel/term.h"

// The reader of blocks with which kernels read the schemes of src/quant, and its numbers. See quant/block.h.

namespace rlx {

class BlockInteger;
class BlockReal;

/// A block that a kernel reads.
struct KernelBlock {
  Kernel* kernel;
  /// The load of the byte there, counted from the start of the block.
  std::function<ExprId(const Index& offset)> byte;
  /// The load of an element of a table; `place` tells tables apart.
  std::function<ExprId(const void* place, std::span<const std::uint16_t> values, const Index& at)> entry;
  bool converts_halves = false;  // by an instruction

  BlockInteger u8(const BlockInteger& offset) const;
  BlockInteger i8(const BlockInteger& offset) const;
  BlockInteger u16(const BlockInteger& offset) const;
  BlockInteger i32(const BlockInteger& offset) const;
  BlockReal f16(const BlockInteger& offset) const;
  BlockReal f32(const BlockInteger& offset) const;
  BlockReal i64(const BlockInteger& offset) const;
  BlockReal f64(const BlockInteger& offset) const;
};

/// An integer of 32 bits: an index for as long as it can be one, so that loads stay neighbours, else an expression.
class BlockInteger {
 public:
  BlockInteger(int number) : index_(number) {}  // NOLINT(google-explicit-constructor): layouts mix both
  BlockInteger(const KernelBlock& block, Index index) : block_(&block), index_(std::move(index)) {}
  BlockInteger(const KernelBlock& block, const Term& term) : block_(&block), term_(term) {}

  const KernelBlock* block() const { return block_; }
  bool is_index() const { return !term_; }
  std::optional<int> number() const;
  /// As an index, below `extent` where it is computed.
  Index index(std::int64_t extent) const;
  /// `block`: whose kernel computes it.
  Term term(const KernelBlock& block) const;

 private:
  const KernelBlock* block_ = nullptr;  // null: a number
  Index index_;
  std::optional<Term> term_;
};

/// A number of f32.
class BlockReal {
 public:
  explicit BlockReal(const Term& term) : term_(term) {}
  const Term& term() const { return term_; }

 private:
  Term term_;
};

/// What is known now, or a comparison of the kernel.
class BlockCondition {
 public:
  explicit BlockCondition(bool known) : known_(known) {}
  BlockCondition(const KernelBlock& block, const Term& term) : block_(&block), term_(term) {}
  const std::optional<Term>& term() const { return term_; }
  bool known() const { return known_; }
  const KernelBlock& block() const { return *block_; }

 private:
  const KernelBlock* block_ = nullptr;
  bool known_ = false;
  std::optional<Term> term_;
};

BlockInteger operator+(const BlockInteger& a, const BlockInteger& b);
BlockInteger operator-(const BlockInteger& a, const BlockInteger& b);
BlockInteger operator*(const BlockInteger& a, const BlockInteger& b);
BlockInteger operator/(const BlockInteger& a, int b);
BlockInteger operator%(const BlockInteger& a, int b);
BlockInteger operator&(const BlockInteger& a, const BlockInteger& b);
BlockInteger operator|(const BlockInteger& a, const BlockInteger& b);
BlockInteger operator<<(const BlockInteger& a, const BlockInteger& b);
BlockInteger operator>>(const BlockInteger& a, const BlockInteger& b);
BlockCondition operator<(const BlockInteger& a, int b);
BlockCondition operator==(const BlockInteger& a, int b);
BlockCondition operator!=(const BlockInteger& a, int b);
BlockInteger select(const BlockCondition& condition, const BlockInteger& yes, const BlockInteger& no);

inline BlockReal operator+(const BlockReal& a, const BlockReal& b) { return BlockReal(a.term() + b.term()); }
inline BlockReal operator-(const BlockReal& a, const BlockReal& b) { return BlockReal(a.term() - b.term()); }
inline BlockReal operator*(const BlockReal& a, const BlockReal& b) { return BlockReal(a.term() * b.term()); }
inline BlockReal operator*(const BlockReal& a, float b) { return BlockReal(a.term() * static_cast<double>(b)); }
inline BlockReal operator+(float a, const BlockReal& b) { return BlockReal(b.term().constant(static_cast<double>(a)) + b.term()); }
inline BlockReal operator-(const BlockReal& a) { return BlockReal(neg(a.term())); }
BlockReal real(const BlockInteger& value);
BlockReal float_of_bits(const BlockInteger& bits);
BlockReal half_of_bits(const BlockInteger& bits);
BlockReal select(const BlockCondition& condition, const BlockReal& yes, const BlockReal& no);
BlockReal select(const BlockCondition& condition, float yes, const BlockReal& no);
BlockReal select(const BlockCondition& condition, float yes, float no);

/// Entry `at` of a small table, whose entries are of 8 bits: bytes of words among which bits of `at` choose.
BlockInteger look_up_small(std::span<const std::uint8_t> table, bool is_signed, const BlockInteger& at);
BlockInteger look_up_large(const void* place, std::span<const std::uint16_t> table, const BlockInteger& at);

template <class Entry, std::size_t size>
BlockInteger look_up(const std::array<Entry, size>& table, const BlockInteger& at) {
  if constexpr (size <= 16 && sizeof(Entry) == 1) {
    const std::array<std::uint8_t, size> bytes = [&] {
      std::array<std::uint8_t, size> all{};
      for (std::size_t i = 0; i < size; ++i) all[i] = static_cast<std::uint8_t>(table[i]);
      return all;
    }();
    return look_up_small(bytes, std::is_signed_v<Entry>, at);
  } else {
    const std::vector<std::uint16_t> wide(table.begin(), table.end());
    return look_up_large(&table, wide, at);
  }
}

}  // namespace rlx
