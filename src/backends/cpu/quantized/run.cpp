#include "backends/cpu/quantized/run.h"

#include <algorithm>

#include "backends/cpu/quantized/block_dot.h"
#include "backends/cpu/quantized/wide_dot.h"

namespace rlx::cpu {
namespace {

template <class T>
T* memory_at(const RunState& run, int slot) {
  return reinterpret_cast<T*>(run.memory[static_cast<std::size_t>(slot)]);
}

RowGroups groups_of(const Step& step, const BlockDot& dot, const RunState& run) {
  const std::int64_t rows = step.rows[0](run.sizes.data());
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
  if (step.weights && run.packed)
    if (const auto kept = run.packed(step, [&](const Array& array) {
          return std::make_shared<const PanelsOf<Made>>(make(weights_at(array.bytes().data(), dot, run)));
        }))
      return {kept, &static_cast<const PanelsOf<Made>&>(*kept).held};
  return std::make_shared<const Made>(make(weights_at(memory_at<const std::byte>(run, step.b), dot, run)));
}

void run_widened(const Step& step, const BlockDot& dot, const RunState& run) {
  const std::shared_ptr<const WidePanels> panels =
      panels_for<WidePanels>(step, dot, run, [&](const BlockWeights& w) { return make_wide_panels(dot.type, w, run.level, *run.pool); });
  WideDotArgs args{groups_of(step, dot, run), memory_at<const float>(run, step.a), panels.get(), dot.columns.value(),
                   dot.depth.value(),         memory_at<float>(run, step.c),       nullptr};
  args.workspace = workspace(run, wide_dot_workspace(args, run.pool->size()));
  wide_dot(args, *run.pool);
}

}  // namespace

void prepare_step(const BlockDot& dot, Step& step, const Preparation& given) {
  step.a = given.slot_of(dot.x), step.b = given.slot_of(dot.blocks), step.c = given.slot_of(dot.node);
  step.weights = given.is_weight(dot.blocks);
  step.block_kernel = dot.kernel(given.level);
  step.rows[0] = given.sizes(dot.rows);
  if (dot.experts) step.experts = given.slot_of(*dot.experts);
}

void run_step(const BlockDot& dot, const Step& step, const RunState& run) { run_steps(dot, {&step, 1}, run); }

std::size_t steps_in_one_loop(const BlockDot& dot, std::span<const Step> steps) {
  const Step& first = steps.front();
  if (!first.block_kernel || !first.weights) return 1;
  const auto joins = [&](const Step& step) {
    const auto* const other = work_of<BlockDot>(*step.launch);
    return other && step.block_kernel && step.weights && step.a == first.a && step.experts == first.experts && other->depth == dot.depth &&
           other->matrices == dot.matrices;
  };
  return static_cast<std::size_t>(std::ranges::find_if_not(steps, joins) - steps.begin());
}

void run_steps(const BlockDot& /*dot*/, std::span<const Step> steps, const RunState& run) {
  const Step& first = steps.front();
  const auto& rows = *work_of<BlockDot>(*first.launch);
  if (!first.block_kernel) return run_widened(first, rows, run);
  std::vector<std::shared_ptr<const BlockPanels>> panels;
  BlockDotArgs args{groups_of(first, rows, run), memory_at<const float>(run, first.a), {}, nullptr};
  for (const Step& step : steps) {
    panels.push_back(panels_for<BlockPanels>(step, *work_of<BlockDot>(*step.launch), run,
                                             [&](const BlockWeights& w) { return BlockPanels(*step.block_kernel, w, *run.pool); }));
    args.products.push_back({panels.back().get(), memory_at<float>(run, step.c)});
  }
  args.workspace = workspace(run, block_dot_workspace(args, run.pool->size()));
  block_dot(args, *run.pool);
}

void add_weights_ahead(const Step& step, const Panels& panels, const RunState& run, std::vector<std::span<const std::byte>>& ahead) {
  const auto* const dot = work_of<BlockDot>(*step.launch);
  if (!dot || !dot->experts || !step.block_kernel) return ahead.push_back(panels.bytes);
  for (const RowGroups::Group& group : groups_of(step, *dot, run).groups)
    ahead.push_back(static_cast<const PanelsOf<BlockPanels>&>(panels).held.matrix(group.matrix));
}

}  // namespace rlx::cpu
