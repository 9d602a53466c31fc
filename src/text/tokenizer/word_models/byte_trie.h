#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace rlx {

/// Strings by their bytes, each with a value: finds all that a text starts with. The edges are one hash table.
class ByteTrie {
 public:
  static constexpr std::int32_t none = -1;

  /// Gives `key` a value (not negative); false if the key is empty or already there.
  bool add(std::string_view key, std::int32_t value) {
    std::uint32_t node = 0;
    for (const char byte : key) node = child_or_new(node, static_cast<unsigned char>(byte));
    if (node == 0 || values_[node] != none) return false;
    values_[node] = value;
    return true;
  }

  /// Calls `found(length, value)` for each key that `text` starts with, from the shortest.
  template <class Found>
  void prefixes(std::string_view text, Found found) const {
    std::uint32_t node = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      node = child(node, static_cast<unsigned char>(text[at]));
      if (node == 0) return;
      if (values_[node] != none) found(at + 1, values_[node]);
    }
  }

  bool empty() const { return values_.size() == 1; }
  /// Whether a key starts with this byte.
  bool starts(char byte) const { return roots_[static_cast<unsigned char>(byte)] != 0; }

 private:
  struct Edge {
    std::uint64_t key = UINT64_MAX;  // node and byte; all ones: empty
    std::uint32_t node = 0;
  };

  std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    if (node == 0) return roots_[byte];
    if (edges_.empty()) return 0;
    const std::uint64_t key = std::uint64_t{node} << 8 | byte;
    for (std::size_t slot = hash_mix(0, key) & (edges_.size() - 1);; slot = (slot + 1) & (edges_.size() - 1)) {
      if (edges_[slot].key == key) return edges_[slot].node;
      if (edges_[slot].key == UINT64_MAX) return 0;
    }
  }

  std::uint32_t child_or_new(std::uint32_t node, unsigned char byte) {
    if (const std::uint32_t known = child(node, byte)) return known;
    const auto fresh = static_cast<std::uint32_t>(values_.size());
    values_.push_back(none);
    if (node == 0) {
      roots_[byte] = fresh;
      return fresh;
    }
    if ((++count_) * 2 > edges_.size()) grow();
    put({std::uint64_t{node} << 8 | byte, fresh});
    return fresh;
  }

  void put(const Edge& edge) {
    std::size_t slot = hash_mix(0, edge.key) & (edges_.size() - 1);
    while (edges_[slot].key != UINT64_MAX) slot = (slot + 1) & (edges_.size() - 1);
    edges_[slot] = edge;
  }

  void grow() {
    std::vector<Edge> old(edges_.empty() ? 64 : edges_.size() * 2);
    old.swap(edges_);
    for (const Edge& edge : old) {
      if (edge.key != UINT64_MAX) put(edge);
    }
  }

  std::vector<std::uint32_t> roots_ = std::vector<std::uint32_t>(256);
  std::vector<Edge> edges_;
  std::vector<std::int32_t> values_ = {none};
  std::size_t count_ = 0;
};

}  // namespace rlx
