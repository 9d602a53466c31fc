// Operands one after another along an axis, as copies of runs of memory: where a kernel would choose among many of them for each element,
// or would be one more to compile for each of many sizes.
#include <algorithm>
#include <cstring>

#include "backends/cpu/routines/routine.h"

namespace rlx::cpu {
namespace {

std::int64_t bytes_of_run(const RoutineArray& array, std::int64_t axis) {
  std::int64_t bytes = info(array.dtype).bits / 8;
  for (auto d = static_cast<std::size_t>(axis); d < array.shape.size(); ++d) bytes *= array.shape[d];
  return bytes;
}

/// A run of each operand makes a run of the result. Threads take bytes of the result, wherever runs end.
void copy_runs(const RoutineCall& call) {
  const auto axis = std::get<std::int64_t>(call.attrs[0]);
  std::vector<std::int64_t> runs, begins{0};
  for (const RoutineArray& operand : call.operands) {
    runs.push_back(bytes_of_run(operand, axis));
    begins.push_back(begins.back() + runs.back());
  }
  std::int64_t outer = 1;
  for (std::int64_t d = 0; d < axis; ++d) outer *= call.results[0].shape[static_cast<std::size_t>(d)];
  const std::int64_t whole = begins.back();
  constexpr std::int64_t worth_a_thread = 1 << 16;  // bytes
  call.pool.parallel_for(outer * whole, worth_a_thread, [&](std::int64_t at, std::int64_t end, int) {
    while (at < end) {
      const std::int64_t row = at / whole, inside = at % whole;
      const auto k = static_cast<std::size_t>(std::ranges::upper_bound(begins, inside) - begins.begin()) - 1;
      const std::int64_t from = inside - begins[k], bytes = std::min(runs[k] - from, end - at);
      std::memcpy(call.results[0].bytes + at, call.operands[k].bytes + row * runs[k] + from, static_cast<std::size_t>(bytes));
      at += bytes;
    }
  });
}

bool takes(const Graph&, const Node& node) { return info(node.results[0].dtype).bits % 8 == 0; }

const RegisterRoutine concat_routine({"concat", takes, copy_runs});

}  // namespace
}  // namespace rlx::cpu
