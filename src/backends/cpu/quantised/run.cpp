#include "backends/cpu/quantised/run.h"

#include <utility>

#include "backends/cpu/quantised/block_dot.h"
#include "backends/cpu/quantised/wide_dot.h"

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
  if (run.program->graph.type(*dot.experts).dtype == i32) return by(memory_at<const std::int32_t>(run, step.operands[0]));
  return by(memory_at<const std::int64_t>(run, step.operands[0]));
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
  const BlockFormat& format = *find_block_format(dot.type);
  std::shared_ptr<const WidePanels> panels;
  if (has_wide_panels(format, run.level))
    panels =
        panels_for<WidePanels>(step, dot, run, [&](const BlockWeights& w) { return make_wide_panels(format, w, run.level, *run.pool); });
  WideDotArgs args{groups_of(step, dot, run),
                   memory_at<const float>(run, step.a),
                   dot.int8,
                   &format,
                   weights_at(memory_at<const std::byte>(run, step.b), dot, run),
                   panels.get(),
                   run.level,
                   memory_at<float>(run, step.c),
                   nullptr};
  args.workspace = workspace(run, wide_dot_workspace(args, run.pool->size()));
  wide_dot(args, *run.pool);
}

}  // namespace

void run_block_dot(const Step& step, const BlockDot& dot, const RunState& run) {
  const PackedRows before = std::exchange(run.packed_rows, {});
  if (!step.block_kernel) return run_widened(step, dot, run);
  const auto panels =
      panels_for<BlockPanels>(step, dot, run, [&](const BlockWeights& w) { return BlockPanels(*step.block_kernel, w, *run.pool); });
  const auto* const x = memory_at<const float>(run, step.a);
  BlockDotArgs args{groups_of(step, dot, run), x, panels.get(), memory_at<float>(run, step.c), nullptr};
  args.workspace = workspace(run, block_dot_workspace(args, run.pool->size()));
  // Queries, keys and values are products of the same rows. As many bytes are as they were: the workspace is where it was.
  const PackedRows rows{x, args.rows.rows(), panels->k(), step.block_kernel->rows};
  args.is_packed = !dot.experts && before == rows;
  if (!dot.experts) run.packed_rows = rows;
  block_dot(args, *run.pool);
}

}  // namespace rlx::cpu
