#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/index.h"
#include "rlx/graph.h"

namespace rlx {

/// The bytes of a blob, and what keeps them.
struct FoundBlob {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
using FindBlob = std::function<FoundBlob(std::int64_t number)>;

/// Reads what a ProgramWriter wrote; see parts.h. Nothing of it is believed: all functions throw Error, which names the file, the part,
/// what was seen and what is allowed.
class ProgramReader {
 public:
  static constexpr bool reads = true;
  /// `where` begins errors. Blobs are numbered from 0 to below `blobs`.
  ProgramReader(std::string where, std::span<const std::byte> bytes, std::int64_t blobs, FindBlob find)
      : where_(std::move(where)), bytes_(bytes), blobs_(blobs), find_(std::move(find)) {}

  template <class T>
  void operator()(const char* name, T& part);
  template <class T>
  void one_of(const char* name, T& part, T last);

  std::int64_t integer(const char* name, std::int64_t least, std::int64_t most);
  /// Of items, each of which takes at least a byte.
  std::int64_t count(const char* name);
  void leaf(const char* name, double& part);
  void leaf(const char* name, std::string& part);
  void leaf(const char* name, Dim& part);
  void leaf(const char* name, Index& part);
  void leaf(const char* name, ValueId& part);
  void leaf(const char* name, Array& part);
  void leaf(const char* name, Region& part);
  void leaf(const char* name, Graph& part);
  FoundBlob blob(const char* name);

  /// Refuses a part: "seen" is what it is, "allowed" what it may be.
  [[noreturn]] void refuse(const char* name, std::string_view seen, std::string_view allowed) const;
  /// Refuses bytes behind the last part.
  void finish() const;

  /// That of the program at hand, whose values are read.
  const Graph* graph = nullptr;

 private:
  std::uint64_t next(const char* name);
  Index::Term term(const char* name);
  void add_node(Graph& graph);

  std::string where_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::int64_t blobs_;
  FindBlob find_;
  std::vector<std::string> texts_;
  std::vector<Dim> dims_;
  std::vector<Region> regions_;
  int depth_ = 0;  // of regions in regions, and of quotients in quotients
};

}  // namespace rlx
