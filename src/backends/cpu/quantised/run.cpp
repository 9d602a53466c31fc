#include "backends/cpu/quantised/run.h"

#include <cstring>

#include "backends/cpu/quantised/block_dot.h"
#include "backends/cpu/quantised/wide_dot.h"

namespace rlx::cpu {
namespace {

template <class T>
T* memory_at(const RunState& run, int slot) {
  return reinterpret_cast<T*>(run.memory[static_cast<std::size_t>(slot)]);
}

RowGroups groups_of(const Step& step, const BlockDot& dot, const RunState& run) {
  const std::int64_t rows = step.rows[0](run.symbols.data());
  if (!dot.experts) return RowGroups::one(rows);
  const auto by = [&](const auto* experts) {
    return RowGroups::by_matrix(rows, dot.matrices.value(), [&](std::int64_t row) { return static_cast<std::int64_t>(experts[row]); });
  };
  if (run.program->graph.type(*dot.experts).dtype == i32) return by(memory_at<const std::int32_t>(run, step.operands[0]));
  return by(memory_at<const std::int64_t>(run, step.operands[0]));
}

/// Panels of a step's weights, `make(weights)`: kept from run to run where the weights stay.
template <class Made, class Make>
std::shared_ptr<const Made> panels_for(const Step& step, const RunState& run, const BlockWeights& weights, const Make& make) {
  if (step.weights && run.packed)
    if (const auto kept = run.packed(step, [&](const Array& array) {
          BlockWeights bound = weights;
          bound.blocks = array.bytes().data();
          return std::make_shared<const PanelsOf<Made>>(make(bound));
        }))
      return {kept, &static_cast<const PanelsOf<Made>&>(*kept).held};
  return std::make_shared<const Made>(make(weights));
}

}  // namespace

void run_block_dot(const Step& step, const BlockDot& dot, const RunState& run) {
  const BlockWeights weights{memory_at<const std::byte>(run, step.b), run.program->graph.type(dot.blocks).shape.back().value(),
                             dot.matrices.value(), dot.columns.value(), dot.depth.value()};
  const auto* const x = memory_at<const float>(run, step.a);
  auto* const c = memory_at<float>(run, step.c);
  if (const BlockKernel* const kernel = dot.kernel(run.level)) {
    const auto panels =
        panels_for<BlockPanels>(step, run, weights, [&](const BlockWeights& w) { return BlockPanels(*kernel, w, *run.pool); });
    BlockDotArgs args{groups_of(step, dot, run), x, panels.get(), c, nullptr};
    args.workspace = workspace(run, block_dot_workspace(args, run.pool->size()));
    // Queries, keys and values are products of the same rows. As many bytes are as they were: the workspace is where it was.
    const PackedRows rows{x, args.rows.rows(), weights.k, kernel->rows};
    args.is_packed = !dot.experts && run.packed_rows == rows;
    run.packed_rows = dot.experts ? PackedRows{} : rows;
    return block_dot(args, *run.pool);
  }
  run.packed_rows = {};
  const BlockFormat& format = *find_block_format(dot.type);
  std::shared_ptr<const WidePanels> panels;
  if (has_wide_panels(format, run.level))
    panels = panels_for<WidePanels>(step, run, weights,
                                    [&](const BlockWeights& w) { return make_wide_panels(format, w, run.level, *run.pool); });
  WideDotArgs args{groups_of(step, dot, run), x, dot.int8, &format, weights, panels.get(), run.level, c, nullptr};
  args.workspace = workspace(run, wide_dot_workspace(args, run.pool->size()));
  wide_dot(args, *run.pool);
}

}  // namespace rlx::cpu
