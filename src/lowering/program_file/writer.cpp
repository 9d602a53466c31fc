#include "lowering/program_file/writer.h"

#include <bit>

#include <xxhash.h>

#include "ir/graph_data.h"
#include "lowering/program_file/graph_parts.h"
#include "lowering/program_file/parts.h"

namespace rlx {

std::array<std::uint64_t, 2> content_hash(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

std::int64_t Blobs::add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  const auto hash = content_hash(bytes);
  const auto [known, is_new] = known_.try_emplace({hash[0], hash[1], bytes.size()}, static_cast<std::int64_t>(all_.size()));
  if (is_new) all_.push_back({bytes, hash, std::move(owner)});
  return known->second;
}

std::int64_t Blobs::add(std::string bytes) {
  const auto kept = std::make_shared<const std::string>(std::move(bytes));
  return add(std::as_bytes(std::span(*kept)), kept);
}

void ProgramWriter::integer(std::int64_t value) {
  auto rest = static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  for (; rest >= 0x80; rest >>= 7) bytes_.push_back(static_cast<char>(rest | 0x80));
  bytes_.push_back(static_cast<char>(rest));
}

void ProgramWriter::leaf(const char* /*name*/, double part) { integer(std::bit_cast<std::int64_t>(part)); }

/// 0 and the text, or the number of one that was written before.
void ProgramWriter::leaf(const char* /*name*/, const std::string& part) {
  const auto [known, is_new] = texts_.try_emplace(part, static_cast<std::int64_t>(texts_.size()) + 1);
  if (!is_new) return integer(known->second);
  integer(0);
  integer(static_cast<std::int64_t>(part.size()));
  bytes_ += part;
}

/// 0 and a number; the number of a polynomial; or that which the next one gets, and its terms.
void ProgramWriter::leaf(const char* name, const Dim& part) {
  if (part.is_static()) return integer(0), integer(part.value());
  const auto [begin, end] = dims_.equal_range(part.hash());
  for (auto known = begin; known != end; ++known)
    if (known->second.first == part) return integer(known->second.second);
  const auto number = static_cast<std::int64_t>(dims_.size()) + 1;
  dims_.emplace(part.hash(), std::pair(part, number));
  integer(number);
  const auto terms = part.terms();
  integer(static_cast<std::int64_t>(terms.size()));
  for (const Dim::Term& term : terms) {
    integer(term.coefficient);
    integer(static_cast<std::int64_t>(term.symbols.size()));
    for (const auto& symbol : term.symbols) leaf(name, symbol->name), integer(symbol->bound);
  }
}

void ProgramWriter::leaf(const char* name, const Index& part) {
  leaf(name, part.constant());
  integer(static_cast<std::int64_t>(part.terms().size()));
  for (const Index::Term& term : part.terms()) {
    const Atom& atom = *term.atom;
    one_of(name, atom.kind, Atom::Kind::loaded);
    integer(atom.id);
    leaf(name, atom.extent);
    if (atom.numerator) leaf(name, *atom.numerator), leaf(name, atom.denominator);
    leaf(name, term.coefficient);
  }
}

void ProgramWriter::leaf(const char* /*name*/, const ValueId& part) { integer(part.node), integer(part.result); }

void ProgramWriter::leaf(const char* name, const Array& part) {
  (*this)(name, part.dtype()), (*this)(name, part.shape());
  integer(blobs_.add(part.bytes(), std::make_shared<const Array>(part)));
}

/// 0: none; else its number, and where that is new the graph.
void ProgramWriter::leaf(const char* name, const Region& part) {
  if (!part) return integer(0);
  const auto known = regions_.find(part.get());
  if (known != regions_.end()) return integer(known->second);
  const auto number = static_cast<std::int64_t>(regions_.size()) + 1;
  regions_.emplace(part.get(), number);
  integer(number);
  leaf(name, *part);
}

void ProgramWriter::leaf(const char* /*name*/, const Graph& part) { write_graph(*this, part); }

}  // namespace rlx
