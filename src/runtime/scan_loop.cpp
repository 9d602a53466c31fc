// A scan without copies: one run of its step moves along the slices of what it reads and writes.
#include <algorithm>
#include <cstring>

#include "ir/array_type.h"
#include "ops/control/control.h"
#include "runtime/run.h"

namespace rlx {
namespace {

/// Slices of packed types need not begin on a byte.
bool has_bytes(const Array& array) { return !is_packed(array.dtype()); }

Array first_slice(const Array& stacked) {
  std::vector<std::int64_t> shape(stacked.shape().begin() + 1, stacked.shape().end());
  const std::size_t bytes = stacked.bytes().size() / static_cast<std::size_t>(stacked.shape()[0]);
  return {stacked.dtype(), std::move(shape), stacked.bytes().first(bytes), nullptr};
}

}  // namespace

/// Where an output of a run that is executed again goes from now on.
void Run::write_output(std::size_t output, std::byte* bytes) {
  output_bytes_[output] = bytes;
  if (direct_[output]) run_.memory[static_cast<std::size_t>(state_.memory.outputs[output])] = bytes;
}

/// The step number `n` of a scan: the carry comes from where the step before wrote it, and goes to the results or to `other`, in turn, so
/// that the last step writes the results. `inputs` are those of slice 0.
void Run::run_step(const Scan& op, std::int64_t n, std::int64_t length, std::span<const Array> inputs, std::span<std::byte* const> other,
                   std::span<std::byte* const> results) {
  const std::int64_t at = op.reverse ? length - 1 - n : n;
  const auto carries = static_cast<std::size_t>(op.carries), moving = carries + static_cast<std::size_t>(op.scanned);
  for (std::size_t k = 0; k < carries && n > 0; ++k) run_.memory[k] = output_bytes_[k];
  for (std::size_t k = carries; k < moving; ++k)
    run_.memory[k] = const_cast<std::byte*>(inputs[k].bytes().data()) + at * std::ssize(inputs[k].bytes());
  for (std::size_t k = 0; k < carries; ++k) write_output(k, (length - n) % 2 == 1 ? results[k] : other[k]);
  for (std::size_t k = carries; k < results.size(); ++k) write_output(k, results[k] + at * std::ssize(outputs_[k].bytes()));
  execute();
  copy_outputs();
}

/// Runs a scan without copies. What all steps read is packed once. False for other ops, and for a scan that is left to the op's evaluation.
bool Run::run_loop(const Node& node, std::span<const Array> operands, std::span<std::byte* const> results) {
  if (node.op != &Op<Scan>::def()) return false;
  const Scan op = Op<Scan>::from(node.attrs);
  const std::int64_t length = op.length[0].evaluate(run_.bindings);
  if (length == 0 || !std::ranges::all_of(operands, has_bytes)) return false;
  std::vector<Array> inputs(operands.begin(), operands.end());
  const auto moving = op.carries + op.scanned;
  std::transform(inputs.begin() + op.carries, inputs.begin() + moving, inputs.begin() + op.carries, first_slice);
  std::vector<const Array*> places;
  for (const Array& input : inputs) places.push_back(&input);
  std::vector<bool> weights = weights_among(inputs);
  std::fill_n(weights.begin(), op.carries, false);  // each step has others
  Run step(*state_.regions.at(op.step.get()), std::move(places), std::move(weights), run_.bindings, nullptr);
  if (!std::ranges::all_of(step.outputs_, has_bytes)) return false;
  step.stays_in_loop_.assign(inputs.size(), false);
  std::fill(step.stays_in_loop_.begin() + moving, step.stays_in_loop_.end(), length > 1);
  const std::vector<std::byte*> other = step.output_bytes_;
  for (std::int64_t n = 0; n < length; ++n) step.run_step(op, n, length, inputs, other, results);
  return true;
}

}  // namespace rlx
