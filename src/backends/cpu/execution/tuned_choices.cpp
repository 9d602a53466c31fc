#include "backends/cpu/execution/tuned_choices.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/cpu/machine/cpu_features.h"
#include "rlx/version.h"

namespace rlx::cpu {
namespace {

/// A choice as a file holds it.
struct StoredChoice {
  std::int64_t transposed, row_blocks, col_blocks, depth, grain;
};

std::string bytes_of(const ProductChoice& choice) {
  const StoredChoice stored{choice.transposed ? 1 : 0, choice.cut.row_blocks, choice.cut.col_blocks, choice.cut.depth, choice.cut.grain};
  std::string bytes(sizeof stored, '\0');
  std::memcpy(bytes.data(), &stored, sizeof stored);
  return bytes;
}

std::optional<ProductChoice> choice_from(const std::optional<std::vector<std::byte>>& bytes) {
  StoredChoice stored{};
  if (!bytes || bytes->size() != sizeof stored) return std::nullopt;
  std::memcpy(&stored, bytes->data(), sizeof stored);
  return ProductChoice{stored.transposed == 1, {stored.row_blocks, stored.col_blocks, stored.depth, stored.grain}};
}

}  // namespace

std::string tuning_machine(CpuLevel level, int threads) {
  return fmt::format("rlx {}, {}, {} threads", version, describe(cpu_features(), level), threads);
}

TunedChoices::TunedChoices(const std::filesystem::path& folder, std::string machine)
    : disk_(folder.empty() ? folder : folder / "tuned"), machine_(std::move(machine)) {}

ProductChoice TunedChoices::get(const ProductKey& key, FunctionRef<bool(const ProductChoice&)> is_possible,
                                FunctionRef<ProductChoice()> measure) {
  const auto known = [&]() -> std::optional<ProductChoice> {
    const std::scoped_lock lock(mutex_);
    const auto it = known_.find(key);
    return it == known_.end() ? std::nullopt : std::optional(it->second);
  };
  if (const auto choice = known(); choice && is_possible(*choice)) return *choice;
  const std::scoped_lock turn(measuring_);
  if (const auto choice = known(); choice && is_possible(*choice)) return *choice;
  const ProductChoice choice = find_or_measure(key, is_possible, measure);
  const std::scoped_lock lock(mutex_);
  return known_[key] = choice;
}

ProductChoice TunedChoices::find_or_measure(const ProductKey& key, FunctionRef<bool(const ProductChoice&)> is_possible,
                                            FunctionRef<ProductChoice()> measure) {
  const std::string text = fmt::format("{}: product {}", machine_, fmt::join(key, " "));
  std::string reason;
  if (const auto stored = choice_from(disk_.find(text, reason)); stored && is_possible(*stored)) {
    const std::scoped_lock lock(mutex_);
    ++counters_.products_from_disk;
    return *stored;
  }
  const ProductChoice choice = measure();
  disk_.store(text, bytes_of(choice), reason);
  const std::scoped_lock lock(mutex_);
  ++counters_.products_timed;
  if (!reason.empty()) counters_.cache_error = reason;
  return choice;
}

CompileCounters TunedChoices::counters() const {
  const std::scoped_lock lock(mutex_);
  return counters_;
}

}  // namespace rlx::cpu
