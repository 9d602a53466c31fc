#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rlx::command {

/// How RLX has what an op kind of the first RLX computed.
enum class Derivation : std::uint8_t {
  op,         // as these ops
  gradient,   // as what `grad` makes of these ops
  fusion,     // as kernels that the compiler makes of these ops
  extension,  // by an op of one's own
};

/// One op kind of the first RLX. `ops` are names of the registry with spaces between; a name that is not registered means "not yet".
struct LegacyKind {
  std::string_view name;
  Derivation how;
  std::string_view ops;
  std::string_view note;
};

/// Every kind of the first RLX, in the order of its own list.
std::span<const LegacyKind> legacy_kinds();

/// The ops of a kind, and those of them that the registry lacks.
std::vector<std::string_view> ops_of(const LegacyKind& kind);
std::vector<std::string_view> missing_ops(const LegacyKind& kind);

}  // namespace rlx::command
