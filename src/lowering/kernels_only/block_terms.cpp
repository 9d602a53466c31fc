#include "lowering/kernels_only/block_terms.h"

#include <algorithm>

namespace rlx {
namespace {

constexpr int run = 16;                       // elements whose places differ by their number alone
constexpr std::int64_t longest_block = 1024;  // bytes; those of every type are fewer

const KernelBlock& block_of(const BlockInteger& a, const BlockInteger& b) { return a.block() ? *a.block() : *b.block(); }

/// Both as numbers of the kernel.
BlockInteger computed(const BlockInteger& a, ScalarOp op, const BlockInteger& b) {
  const KernelBlock& block = block_of(a, b);
  return {block, a.term(block).apply(op, {b.term(block)}, i32)};
}

BlockInteger known(const BlockInteger& a, const BlockInteger& b, const Index& index) {
  if (!a.block() && !b.block()) return BlockInteger(static_cast<int>(index.constant().value()));
  return {block_of(a, b), index};
}

Index plain(const BlockInteger& a) { return a.index(0); }
bool are_indices(const BlockInteger& a, const BlockInteger& b) { return a.is_index() && b.is_index(); }

/// How many whole runs an index of a block is, and its place in the next one, where both are known without division: then a place in the
/// run is in no quotient by a multiple of its length, so that its neighbours stay neighbours.
std::optional<std::array<Index, 2>> in_runs(const Index& index, int multiple) {
  if (multiple % run != 0 || multiple == run) return std::nullopt;
  const std::array parts{Index::quotient(index, run), Index::remainder(index, run)};
  const auto is_plain = [](const Index& part) {
    return std::ranges::all_of(part.terms(), [](const Index::Term& term) { return term.atom->kind == Atom::Kind::variable; });
  };
  return std::ranges::all_of(parts, is_plain) ? std::optional(parts) : std::nullopt;
}

BlockCondition compared(const BlockInteger& a, ScalarOp op, int b) {
  const KernelBlock& block = *a.block();
  const Term x = a.term(block);
  return {block, x.apply(op, {x.constant(b)}, boolean)};
}

BlockInteger little_endian(const KernelBlock& block, const BlockInteger& offset, int bytes) {
  BlockInteger all = block.u8(offset);
  for (int i = 1; i < bytes; ++i) all = all | block.u8(offset + i) << 8 * i;
  return all;
}

/// 64 bits, in a type of that width.
Term wide_bits(const KernelBlock& block, const BlockInteger& offset) {
  const auto half = [&](int at) { return cast(bitcast(block.i32(offset + at).term(block), u32), u64); };
  return half(0) | half(4) << 32;
}

}  // namespace

std::optional<int> BlockInteger::number() const {
  if (term_ || !index_.is_constant()) return std::nullopt;
  return static_cast<int>(index_.constant().value());
}

Index BlockInteger::index(std::int64_t extent) const { return term_ ? Index::loaded(cast(*term_, i64).id(), Dim(extent)) : index_; }

Term BlockInteger::term(const KernelBlock& block) const {
  if (term_) return *term_;
  if (const auto constant = number()) return {*block.kernel, block.kernel->constant(*constant, i32)};
  Expr position;
  position.kind = Expr::Kind::position;
  position.dtype = i32;
  position.index = index_;
  return {*block.kernel, block.kernel->add(std::move(position))};
}

BlockInteger operator+(const BlockInteger& a, const BlockInteger& b) {
  return are_indices(a, b) ? known(a, b, plain(a) + plain(b)) : computed(a, ScalarOp::add, b);
}
BlockInteger operator-(const BlockInteger& a, const BlockInteger& b) {
  return are_indices(a, b) ? known(a, b, plain(a) - plain(b)) : computed(a, ScalarOp::sub, b);
}
BlockInteger operator*(const BlockInteger& a, const BlockInteger& b) {
  if (const auto number = b.number(); number && a.is_index()) return known(a, b, plain(a) * Dim(*number));
  if (const auto number = a.number(); number && b.is_index()) return known(a, b, plain(b) * Dim(*number));
  return computed(a, ScalarOp::mul, b);
}
BlockInteger operator/(const BlockInteger& a, int b) {
  if (!a.is_index()) fail_internal("blocks: {} is divided by what is read", b);
  if (const auto parts = in_runs(plain(a), b)) return known(a, b, Index::quotient((*parts)[0], Dim(b / run)));
  return known(a, b, Index::quotient(plain(a), Dim(b)));
}
BlockInteger operator%(const BlockInteger& a, int b) {
  if (!a.is_index()) fail_internal("blocks: the remainder by {} of what is read", b);
  if (const auto parts = in_runs(plain(a), b)) return known(a, b, Index::remainder((*parts)[0], Dim(b / run)) * Dim(run) + (*parts)[1]);
  return known(a, b, Index::remainder(plain(a), Dim(b)));
}
BlockInteger operator&(const BlockInteger& a, const BlockInteger& b) { return computed(a, ScalarOp::logical_and, b); }
BlockInteger operator|(const BlockInteger& a, const BlockInteger& b) { return computed(a, ScalarOp::logical_or, b); }
BlockInteger operator<<(const BlockInteger& a, const BlockInteger& b) { return b.number() == 0 ? a : computed(a, ScalarOp::shl, b); }
BlockInteger operator>>(const BlockInteger& a, const BlockInteger& b) { return b.number() == 0 ? a : computed(a, ScalarOp::shr, b); }

BlockCondition operator<(const BlockInteger& a, int b) {
  if (a.is_index() && plain(a).known_below(Dim(b))) return BlockCondition(true);
  if (const auto lower = a.is_index() ? plain(a).lower() : std::nullopt; lower && (*lower - Dim(b)).known_non_negative())
    return BlockCondition(false);
  return compared(a, ScalarOp::lt, b);
}
BlockCondition operator==(const BlockInteger& a, int b) { return compared(a, ScalarOp::eq, b); }
BlockCondition operator!=(const BlockInteger& a, int b) { return compared(a, ScalarOp::ne, b); }

BlockInteger select(const BlockCondition& condition, const BlockInteger& yes, const BlockInteger& no) {
  if (!condition.term()) return condition.known() ? yes : no;
  const KernelBlock& block = condition.block();
  return {block, select(*condition.term(), yes.term(block), no.term(block))};
}
BlockReal select(const BlockCondition& condition, const BlockReal& yes, const BlockReal& no) {
  return BlockReal(select(*condition.term(), yes.term(), no.term()));
}
BlockReal select(const BlockCondition& condition, float yes, const BlockReal& no) {
  return BlockReal(select(*condition.term(), static_cast<double>(yes), no.term()));
}
BlockReal select(const BlockCondition& condition, float yes, float no) {
  const Term least(*condition.block().kernel, condition.block().kernel->constant(static_cast<double>(no), rlx::f32));
  return BlockReal(select(*condition.term(), static_cast<double>(yes), least));
}

BlockReal real(const BlockInteger& value) { return BlockReal(cast(value.term(*value.block()), f32)); }
BlockReal float_of_bits(const BlockInteger& bits) { return BlockReal(bitcast(bits.term(*bits.block()), f32)); }
/// Without branches, so that a vector of scales is converted as one.
BlockReal half_of_bits(const BlockInteger& bits) {
  const Term all = bits.term(*bits.block());
  if (bits.block()->converts_halves) return BlockReal(cast(bitcast(cast(all, u16), f16), f32));
  const Term exponent = (all >> 10) & 31, mantissa = all & 1023;
  const Term subnormal = bitcast(cast(mantissa, f32) * 0x1p-24, i32);
  const Term top = select(exponent == 31, 0x7f800000, (exponent + 112) << 23);
  const Term magnitude = select(exponent == 0, subnormal, top | mantissa << 13);
  return BlockReal(bitcast(magnitude | (all & 0x8000) << 16, f32));
}

BlockInteger look_up_small(std::span<const std::uint8_t> table, bool is_signed, const BlockInteger& at) {
  const KernelBlock& block = *at.block();
  std::vector<Term> words;
  for (std::size_t first = 0; first < table.size(); first += 4) {
    std::uint32_t word = 0;
    for (std::size_t i = first; i < std::min(first + 4, table.size()); ++i) word |= std::uint32_t{table[i]} << 8 * (i - first);
    words.emplace_back(*block.kernel, block.kernel->constant(static_cast<std::int32_t>(word), i32));
  }
  const Term place = at.term(block);
  for (int bit = 4; words.size() > 1; bit *= 2) {
    const Term upper = (place & bit) != 0;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) words[i / 2] = select(upper, words[i + 1], words[i]);
    if (words.size() % 2 == 1) words[words.size() / 2] = words.back();
    words.erase(words.begin() + static_cast<std::ptrdiff_t>((words.size() + 1) / 2), words.end());
  }
  const Term from = (place & 3) << 3;
  if (!is_signed) return {block, (words[0] >> from) & 255};
  return {block, words[0] << (24 - from) >> 24};
}

BlockInteger look_up_large(const void* place, std::span<const std::uint16_t> table, const BlockInteger& at) {
  const KernelBlock& block = *at.block();
  const Term entry(*block.kernel, block.entry(place, table, at.index(std::ssize(table))));
  return {block, cast(entry, i32)};
}

BlockInteger KernelBlock::u8(const BlockInteger& offset) const {
  return {*this, cast(Term(*kernel, byte(offset.index(longest_block))), rlx::i32)};
}
BlockInteger KernelBlock::i8(const BlockInteger& offset) const { return u8(offset) << 24 >> 24; }
BlockInteger KernelBlock::u16(const BlockInteger& offset) const { return little_endian(*this, offset, 2); }
BlockInteger KernelBlock::i32(const BlockInteger& offset) const { return little_endian(*this, offset, 4); }
BlockReal KernelBlock::f16(const BlockInteger& offset) const { return half_of_bits(u16(offset)); }
BlockReal KernelBlock::f32(const BlockInteger& offset) const { return float_of_bits(i32(offset)); }
BlockReal KernelBlock::i64(const BlockInteger& offset) const {
  return BlockReal(cast(bitcast(wide_bits(*this, offset), rlx::i64), rlx::f32));
}
BlockReal KernelBlock::f64(const BlockInteger& offset) const {
  return BlockReal(cast(bitcast(wide_bits(*this, offset), rlx::f64), rlx::f32));
}

}  // namespace rlx
