#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/index.h"
#include "rlx/graph.h"

namespace rlx {

/// Bytes beside the structure of a program file: elements of constants, machine code. Equal ones are there once.
class Blobs {
 public:
  /// The number of the bytes, which must live until they are written.
  std::int64_t add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  /// The same of bytes that are kept.
  std::int64_t add(std::string bytes);

  struct Blob {
    std::span<const std::byte> bytes;
    std::array<std::uint64_t, 2> hash;
    std::shared_ptr<const void> owner;
  };
  const std::vector<Blob>& all() const { return all_; }

 private:
  std::map<std::array<std::uint64_t, 3>, std::int64_t> known_;  // by hash and size
  std::vector<Blob> all_;
};

/// The hash by which what was altered shows.
std::array<std::uint64_t, 2> content_hash(std::span<const std::byte> bytes);

/// Appends the structure of a program to bytes. Texts and sizes that were written before are numbers from then on. See parts.h.
class ProgramWriter {
 public:
  static constexpr bool reads = false;
  explicit ProgramWriter(Blobs& blobs) : blobs_(blobs) {}

  template <class T>
  void operator()(const char* name, const T& part);
  /// Of an enumeration.
  template <class T>
  void one_of(const char* name, const T& part, T last);

  /// In as few bytes as it takes: seven bits in each, the lowest first; the sign is the lowest bit.
  void integer(std::int64_t value);
  void leaf(const char* name, double part);
  void leaf(const char* name, const std::string& part);
  void leaf(const char* name, const Dim& part);
  void leaf(const char* name, const Index& part);
  void leaf(const char* name, const ValueId& part);
  void leaf(const char* name, const Array& part);
  void leaf(const char* name, const Region& part);
  void leaf(const char* name, const Graph& part);
  void blob(std::string bytes) { integer(blobs_.add(std::move(bytes))); }

  const std::string& bytes() const { return bytes_; }

 private:
  void text(std::string_view part);

  Blobs& blobs_;
  std::string bytes_;
  std::unordered_map<std::string, std::int64_t> texts_;
  std::unordered_multimap<std::size_t, std::pair<Dim, std::int64_t>> dims_;  // by hash
  std::map<const Graph*, std::int64_t> regions_;
};

}  // namespace rlx
