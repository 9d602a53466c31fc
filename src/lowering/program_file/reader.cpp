#include "lowering/program_file/reader.h"

#include <bit>
#include <limits>

#include "base/checked.h"
#include "lowering/program_file/graph_parts.h"
#include "lowering/program_file/parts.h"

namespace rlx {
namespace {

constexpr int most_depth = 64;

/// Counts what lies in each other.
struct Deeper {
  explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

}  // namespace

void ProgramReader::refuse(const char* name, std::string_view seen, std::string_view allowed) const {
  fail("{}: {} before byte {} is {} (allowed: {})", where_, name, at_, seen, allowed);
}

void ProgramReader::finish() const {
  if (at_ != bytes_.size()) refuse("end", fmt::format("{} bytes early", bytes_.size() - at_), "none");
}

std::uint64_t ProgramReader::next(const char* name) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (at_ == bytes_.size()) refuse(name, "cut short", "whole");
    const auto byte = static_cast<std::uint64_t>(bytes_[at_++]);
    if (shift > 63 || (shift == 63 && byte > 1)) refuse(name, "a number of more than 64 bits", "64 bits");
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

std::int64_t ProgramReader::integer(const char* name, std::int64_t least, std::int64_t most) {
  const std::uint64_t packed = next(name);
  const auto value = static_cast<std::int64_t>(packed >> 1 ^ (~(packed & 1) + 1));
  if (value < least || value > most) refuse(name, std::to_string(value), fmt::format("{}..{}", least, most));
  return value;
}

std::int64_t ProgramReader::count(const char* name) {
  const std::int64_t value = integer(name, 0, std::numeric_limits<std::int64_t>::max());
  const auto left = static_cast<std::int64_t>(bytes_.size() - at_);  // behind the number itself
  if (value > left) refuse(name, std::to_string(value), fmt::format("0..{}", left));
  return value;
}

void ProgramReader::leaf(const char* name, double& part) {
  part = std::bit_cast<double>(integer(name, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
}

void ProgramReader::leaf(const char* name, std::string& part) {
  const std::int64_t known = integer(name, 0, std::ssize(texts_));
  if (known > 0) return void(part = texts_[static_cast<std::size_t>(known - 1)]);
  const auto size = static_cast<std::size_t>(count(name));
  part.assign(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
  at_ += size;
  texts_.push_back(part);
}

void ProgramReader::leaf(const char* name, Dim& part) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t known = integer(name, 0, std::ssize(dims_) + 1);
  if (known == 0) return void(part = integer(name, least, most));
  if (known <= std::ssize(dims_)) return void(part = dims_[static_cast<std::size_t>(known - 1)]);
  part = 0;
  for (std::int64_t terms = count(name); terms > 0; --terms) {
    Dim product = integer(name, least, most);
    for (std::int64_t symbols = count(name); symbols > 0; --symbols) {
      std::string symbol;
      leaf(name, symbol);
      product *= Dim::symbol(symbol, integer(name, 1, most));
    }
    part += product;
  }
  dims_.push_back(part);
}

Index::Term ProgramReader::term(const char* name) {
  Atom atom{};
  one_of(name, atom.kind, Atom::Kind::loaded);
  (*this)(name, atom.id), leaf(name, atom.extent);
  if (atom.kind == Atom::Kind::quotient || atom.kind == Atom::Kind::remainder) {
    Index numerator;
    leaf(name, numerator), leaf(name, atom.denominator);
    if (atom.denominator == Dim(0)) refuse(name, "a division by 0", "other sizes");
    atom.numerator = std::make_shared<const Index>(std::move(numerator));
  }
  Dim coefficient;
  leaf(name, coefficient);
  return {std::make_shared<const Atom>(std::move(atom)), coefficient};
}

void ProgramReader::leaf(const char* name, Index& part) {
  const Deeper deeper(depth_);
  if (depth_ > most_depth) refuse(name, "deeper", fmt::format("{} quotients in each other", most_depth));
  Dim constant;
  leaf(name, constant);
  part = Index(constant);
  for (std::int64_t terms = count(name); terms > 0; --terms) {
    Index::Term next = term(name);
    part = part + Index::of_term(std::move(next.atom), std::move(next.coefficient));
  }
}

void ProgramReader::leaf(const char* name, ValueId& part) { (*this)(name, part.node), (*this)(name, part.result); }

void ProgramReader::leaf(const char* name, Array& part) {
  DType dtype{};
  std::vector<std::int64_t> shape;
  (*this)(name, dtype), (*this)(name, shape);
  for (const std::int64_t extent : shape)
    if (extent < 0) refuse(name, fmt::format("of size {}", extent), "sizes from 0 on");
  const auto elements = checked_product(shape);
  const auto bits = elements ? checked_mul(*elements, std::int64_t{info(dtype).bits}) : std::nullopt;
  const FoundBlob found = blob(name);
  if (!bits || bytes_for(dtype, *elements) != std::ssize(found.bytes))
    refuse(name, fmt::format("{} bytes", found.bytes.size()), "those of its elements");
  part = Array(dtype, std::move(shape), found.bytes, found.owner);
}

void ProgramReader::leaf(const char* name, Region& part) {
  const std::int64_t known = integer(name, 0, std::ssize(regions_) + 1);
  if (known == 0) return part.reset();
  if (known <= std::ssize(regions_)) {
    part = regions_[static_cast<std::size_t>(known - 1)];
    if (!part) refuse(name, "inside of itself", "a region that ended before");
    return;
  }
  const Deeper deeper(depth_);
  if (depth_ > most_depth) refuse(name, "deeper", fmt::format("{} regions in each other", most_depth));
  regions_.emplace_back();
  const auto number = regions_.size() - 1;
  part = std::make_shared<const Graph>(read_graph(*this));
  regions_[number] = part;
}

void ProgramReader::leaf(const char* /*name*/, Graph& part) { part = read_graph(*this); }

FoundBlob ProgramReader::blob(const char* name) { return find_(integer(name, 0, blobs_ - 1)); }

}  // namespace rlx
