// Control flow: the host decides, and regions are computed one after another. Loops evaluate now and then, so that what waits to be
// computed stays small.
#include "backends/mlx/library/call.h"
#include "ops/control/host_call.h"

namespace rlx::mlx {
namespace {

std::vector<mx::array> joined(std::span<const mx::array> first, std::span<const mx::array> second) {
  std::vector<mx::array> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

Results cond(const Call& c) {
  mx::array holds = c.x[0];
  const bool then = holds.item<bool>();
  return c.run_region(c.attr<Region>(then ? "then" : "otherwise"), {c.x.begin() + 1, c.x.end()});
}

Results while_loop(const Call& c) {
  const auto carries = static_cast<std::size_t>(c.number("carries"));
  std::vector<mx::array> carry(c.x.begin(), c.x.begin() + static_cast<std::ptrdiff_t>(carries));
  const auto constants = c.x.subspan(carries);
  while (true) {
    std::vector<mx::array> needed = c.run_region(c.attr<Region>("condition"), joined(carry, constants));
    needed.insert(needed.end(), carry.begin(), carry.end());
    mx::eval(needed);  // of the carry, too: else it would wait to be computed until the end
    if (!needed[0].item<bool>()) return carry;
    carry = c.run_region(c.attr<Region>("step"), joined(carry, constants));
  }
}

/// Steps that wait to be computed.
constexpr std::int64_t steps_together = 16;

Results scan(const Call& c) {
  const auto carries = static_cast<std::size_t>(c.number("carries")), scanned = static_cast<std::size_t>(c.number("scanned"));
  const std::int64_t length = c.attr<Dims>("length")[0].evaluate(c.bindings);
  const bool reverse = c.flag("reverse");
  std::vector<mx::array> carry(c.x.begin(), c.x.begin() + static_cast<std::ptrdiff_t>(carries));
  const auto over = c.x.subspan(carries, scanned), constants = c.x.subspan(carries + scanned);
  std::vector<std::vector<mx::array>> stacked(c.node.results.size() - carries);
  for (std::int64_t i = 0; i < length; ++i) {
    std::vector<mx::array> operands = std::move(carry);
    for (const mx::array& x : over) operands.push_back(mx::take(x, static_cast<int>(reverse ? length - 1 - i : i), 0));
    Results results = c.run_region(c.attr<Region>("step"), joined(operands, constants));
    operands.clear();
    if (!c.traced && i % steps_together == steps_together - 1) mx::eval(results);
    carry.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(carries));
    for (std::size_t y = 0; y < stacked.size(); ++y) stacked[y].push_back(results[carries + y]);
  }
  for (std::size_t y = 0; y < stacked.size(); ++y) {
    if (reverse) std::reverse(stacked[y].begin(), stacked[y].end());
    carry.push_back(length == 0 ? mx::zeros(c.shape(carries + y), dtype_of(c.result_type(carries + y))) : mx::stack(stacked[y], 0));
  }
  return carry;
}

}  // namespace

Rows control_rows() {
  static constexpr Row<Rule> rows[] = {
      {"cond", cond}, {"while", while_loop}, {"scan", scan}, {"host_call", nullptr, nullptr, host_call_reason}};
  return rows;
}

}  // namespace rlx::mlx
