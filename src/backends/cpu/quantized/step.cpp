#include "backends/cpu/quantized/step.h"

#include <algorithm>

#include "backends/cpu/machine/level_of.h"
#include "backends/cpu/quantized/block_dot.h"
#include "backends/cpu/quantized/wide_dot.h"

namespace rlx::cpu {
namespace {

struct BlockDotStep {
  int x, blocks, result;      // slots
  const BlockKernel* kernel;  // null: the weights are widened
  Size rows;
};

const BlockDotStep& found_in(const Step& step) { return step.found_as<BlockDotStep>(); }

template <class T>
T* memory_at(const RunState& run, int slot) {
  return reinterpret_cast<T*>(run.memory[static_cast<std::size_t>(slot)]);
}

RowGroups groups_of(const Step& step, const BlockDot& dot, const RunState& run) {
  const std::int64_t rows = found_in(step).rows(run.sizes.data());
  if (!dot.experts) return RowGroups::one(rows);
  const auto by = [&](const auto* experts) {
    return RowGroups::by_matrix(rows, dot.matrices.value(), [&](std::int64_t row) { return static_cast<std::int64_t>(experts[row]); });
  };
  if (run.program->graph.type(*dot.experts).dtype == i32) return by(memory_at<const std::int32_t>(run, step.experts));
  return by(memory_at<const std::int64_t>(run, step.experts));
}

/// The panels of a step's weights: those that they were packed to, else such of this run alone. `make` gives either, `pack` fills one.
auto panels_of(const Step& step, const BlockDot& dot, const RunState& run, const auto& make, const auto& pack) {
  const BlockWeights weights = dot.packing(run.program->graph).weights(memory_at<const std::byte>(run, found_in(step).blocks));
  std::byte* const packed = step.weights < 0 ? nullptr : memory_at<std::byte>(run, step.weights);
  auto panels = make(weights, packed);
  if (!packed) pack(weights, panels);
  return panels;
}

void run_widened(const Step& step, const BlockDot& dot, const RunState& run) {
  const WidePanels panels = panels_of(
      step, dot, run, [&](const BlockWeights& w, std::byte* at) { return wide_panels(dot.type, w, level_of(*run.target), at); },
      [&](const BlockWeights& w, WidePanels& to) { pack_wide(dot.type, w, to, *run.pool); });
  WideDotArgs args{groups_of(step, dot, run), memory_at<const float>(run, found_in(step).x), &panels, dot.columns.value(),
                   dot.depth.value(),         memory_at<float>(run, found_in(step).result),  nullptr};
  args.workspace = workspace(run, wide_dot_workspace(args, run.pool->size()));
  wide_dot(args, *run.pool);
}

}  // namespace

void prepare_step(const BlockDot& dot, Step& step, const Preparation& given) {
  const int blocks = given.slot_of(dot.blocks);
  if (dot.packed) prepare_weights(step, given, *dot.packed, dot.packing(given.program.graph).bytes(given.level));
  if (dot.experts) step.experts = given.slot_of(*dot.experts);
  step.found = std::make_shared<const BlockDotStep>(
      BlockDotStep{given.slot_of(dot.x), blocks, given.slot_of(dot.node), dot.kernel(given.level), given.sizes(dot.rows)});
}

std::size_t steps_in_one_loop(const BlockDot& dot, std::span<const Step> steps) {
  const auto stays = [](const Step& step) { return step.weights >= 0 && found_in(step).kernel; };
  const Step& first = steps.front();
  if (!stays(first)) return 1;
  const auto joins = [&](const Step& step) {
    const auto* const other = work_of<BlockDot>(*step.launch);
    return other && stays(step) && found_in(step).x == found_in(first).x && step.experts == first.experts && other->depth == dot.depth &&
           other->matrices == dot.matrices;
  };
  return static_cast<std::size_t>(std::ranges::find_if_not(steps, joins) - steps.begin());
}

void run_steps(const BlockDot& /*dot*/, std::span<const Step> steps, const RunState& run) {
  const Step& first = steps.front();
  const auto& rows = *work_of<BlockDot>(*first.launch);
  if (!found_in(first).kernel) return run_widened(first, rows, run);
  std::vector<BlockPanels> panels;
  panels.reserve(steps.size());
  BlockDotArgs args{groups_of(first, rows, run), memory_at<const float>(run, found_in(first).x), {}, nullptr};
  for (const Step& step : steps) {
    panels.push_back(panels_of(
        step, *work_of<BlockDot>(*step.launch), run,
        [&](const BlockWeights& w, std::byte* at) { return BlockPanels(*found_in(step).kernel, w, at); },
        [&](const BlockWeights& w, BlockPanels& to) { to.pack(w, *run.pool); }));
    args.products.push_back({&panels.back(), memory_at<float>(run, found_in(step).result)});
  }
  args.workspace = workspace(run, block_dot_workspace(args, run.pool->size()));
  block_dot(args, *run.pool);
}

bool add_chosen_weights(const BlockDot& dot, const Step& step, const RunState& run, WeightsAhead& ahead) {
  if (!dot.experts) return false;
  if (!found_in(step).kernel) return true;
  const BlockPanels panels(*found_in(step).kernel, dot.packing(run.program->graph).weights(nullptr),
                           memory_at<std::byte>(run, step.weights));
  for (const RowGroups::Group& group : groups_of(step, dot, run).groups) ahead.push_back(panels.matrix(group.matrix));
  return true;
}

std::int64_t PackedBlocks::bytes(CpuLevel level) const {
  const BlockKernel* const kernel = block_kernel(type, level);
  return kernel ? BlockPanels::bytes_of(*kernel, weights(nullptr)) : wide_panel_bytes(type, weights(nullptr), level);
}

void prepare_step(const PackedBlocks& blocks, Step& step, const Preparation& given) {
  prepare_packing(step, given, blocks.bytes(given.level));
}

void run_step(const PackedBlocks& blocks, const Step& step, const RunState& run) {
  const BlockWeights weights = blocks.weights(memory_at<const std::byte>(run, step.operands[0]));
  std::byte* const to = memory_at<std::byte>(run, step.results[0]);
  if (const BlockKernel* const kernel = block_kernel(blocks.type, level_of(*run.target)))
    return BlockPanels(*kernel, weights, to).pack(weights, *run.pool);
  WidePanels panels = wide_panels(blocks.type, weights, level_of(*run.target), to);
  pack_wide(blocks.type, weights, panels, *run.pool);
}

}  // namespace rlx::cpu
