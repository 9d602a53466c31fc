#include "backends/cpu/quantized/step.h"

#include <algorithm>

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

BlockWeights weights_at(const std::byte* blocks, const BlockDot& dot, const RunState& run) {
  return {blocks, run.program->graph.type(dot.blocks).shape.back().value(), dot.matrices.value(), dot.columns.value(), dot.depth.value()};
}

/// Panels of a step's weights, `make(weights)`: kept from run to run where the weights stay.
template <class Made, class Make>
std::shared_ptr<const Made> panels_for(const Step& step, const BlockDot& dot, const RunState& run, const Make& make) {
  if (step.weights >= 0 && run.packed)
    if (const auto kept = run.packed(step, [&](const Array& array) {
          return std::make_shared<const PanelsOf<Made>>(make(weights_at(array.bytes().data(), dot, run)));
        }))
      return {kept, &static_cast<const PanelsOf<Made>&>(*kept).held};
  return std::make_shared<const Made>(make(weights_at(memory_at<const std::byte>(run, found_in(step).blocks), dot, run)));
}

void run_widened(const Step& step, const BlockDot& dot, const RunState& run) {
  const std::shared_ptr<const WidePanels> panels =
      panels_for<WidePanels>(step, dot, run, [&](const BlockWeights& w) { return make_wide_panels(dot.type, w, run.level, *run.pool); });
  WideDotArgs args{groups_of(step, dot, run), memory_at<const float>(run, found_in(step).x), panels.get(), dot.columns.value(),
                   dot.depth.value(),         memory_at<float>(run, found_in(step).result),  nullptr};
  args.workspace = workspace(run, wide_dot_workspace(args, run.pool->size()));
  wide_dot(args, *run.pool);
}

}  // namespace

void prepare_step(const BlockDot& dot, Step& step, const Preparation& given) {
  const int blocks = given.slot_of(dot.blocks);
  if (given.is_weight(dot.blocks)) step.weights = blocks;
  if (dot.experts) step.experts = given.slot_of(*dot.experts);
  step.found = std::make_shared<const BlockDotStep>(
      BlockDotStep{given.slot_of(dot.x), blocks, given.slot_of(dot.node), dot.kernel(given.level), given.sizes(dot.rows)});
}

void run_step(const BlockDot& dot, const Step& step, const RunState& run) { run_steps(dot, {&step, 1}, run); }

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
  std::vector<std::shared_ptr<const BlockPanels>> panels;
  BlockDotArgs args{groups_of(first, rows, run), memory_at<const float>(run, found_in(first).x), {}, nullptr};
  for (const Step& step : steps) {
    panels.push_back(panels_for<BlockPanels>(step, *work_of<BlockDot>(*step.launch), run,
                                             [&](const BlockWeights& w) { return BlockPanels(*found_in(step).kernel, w, *run.pool); }));
    args.products.push_back({panels.back().get(), memory_at<float>(run, found_in(step).result)});
  }
  args.workspace = workspace(run, block_dot_workspace(args, run.pool->size()));
  block_dot(args, *run.pool);
}

bool add_chosen_weights(const BlockDot& dot, const Step& step, const Panels& panels, const RunState& run, WeightsAhead& ahead) {
  if (!dot.experts || !found_in(step).kernel) return false;
  for (const RowGroups::Group& group : groups_of(step, dot, run).groups)
    ahead.push_back(static_cast<const PanelsOf<BlockPanels>&>(panels).held.matrix(group.matrix));
  return true;
}

}  // namespace rlx::cpu
