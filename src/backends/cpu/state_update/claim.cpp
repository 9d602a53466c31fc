#include "backends/cpu/state_update/claim.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/cpu/execution/execute.h"
#include "lowering/program_file/update_parts.h"

namespace rlx::cpu {
namespace {

void copy_window(const Window& window, std::span<const std::int64_t> shape, std::int64_t width, std::byte* to) {
  const std::size_t rank = shape.size();
  if (std::ranges::count(window.shape, 0) > 0) return;
  if (rank == 0) return void(std::memcpy(to, window.bytes, static_cast<std::size_t>(width)));
  std::int64_t rows = 1, place = 0;  // rows of the last axis; place: of the window's first element
  for (std::size_t axis = 0; axis < rank; ++axis) {
    place = place * shape[axis] + std::clamp<std::int64_t>(window.starts[axis], 0, shape[axis] - window.shape[axis]);
    if (axis + 1 < rank) rows *= window.shape[axis];
  }
  std::vector<std::int64_t> at(rank, 0);
  const std::int64_t row_bytes = window.shape.back() * width;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) offset = offset * shape[axis] + at[axis];
    std::memcpy(to + (place + offset) * width, window.bytes + row * row_bytes, static_cast<std::size_t>(row_bytes));
    for (std::size_t axis = rank - 1; axis-- > 0;) {
      if (++at[axis] < window.shape[axis]) break;
      at[axis] = 0;
    }
  }
}

}  // namespace

void copy_windows(std::span<const Window> windows, std::span<const std::int64_t> shape, std::int64_t width, std::byte* to,
                  ThreadPool& pool) {
  if (windows.empty()) return;
  const std::vector<std::int64_t>& extents = windows.front().shape;
  const auto axis = static_cast<std::size_t>(std::ranges::find_if(extents, [](std::int64_t n) { return n > 1; }) - extents.begin());
  if (pool.nodes() == 1 || axis == extents.size()) {
    for (const Window& window : windows) copy_window(window, shape, width, to);
    return;
  }
  std::int64_t index_bytes = width;
  for (std::size_t inner = axis + 1; inner < shape.size(); ++inner) index_bytes *= extents[inner];
  const std::int64_t count = extents[axis], last = shape[axis] - count;
  pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (Window part : windows) {
      part.bytes += begin * index_bytes;
      part.shape[axis] = end - begin;
      part.starts[axis] = std::clamp<std::int64_t>(part.starts[axis], 0, last) + begin;
      copy_window(part, shape, width, to);
    }
  });
}

namespace {

const RegisterWork<StateUpdate> state_update_work("state_update");

using Shapes = std::vector<std::vector<Size>>;  // of the state, then of each operand

const Shapes& shapes(const Step& step) { return step.found_as<Shapes>(); }

/// The windows of one update of a state.
class StateWriter {
 public:
  StateWriter(const Step& step, const StateUpdate& update, const RunState& run)
      : step_(step), run_(run), shape_(sizes(shapes(step)[0])), width_(bytes_for(graph().type(update.state).dtype, 1)) {}

  void operator()(const StateUpdate::Window& window) {
    Window here{memory(), shape(), {}};
    ++next_;
    for (ValueId start : window.starts) {
      here.starts.push_back(integers(start).get_int(0));
      ++next_;
    }
    copy(std::span(&here, 1));
  }

  void operator()(const StateUpdate::Windows& windows) {
    const std::byte* const bytes = memory();
    const std::vector<std::int64_t> all = shape();
    ++next_;
    const Array starts = integers(windows.starts);
    ++next_;
    Window here{bytes, {all.begin() + 1, all.end()}, std::vector<std::int64_t>(shape_.size(), 0)};
    for (std::int64_t axis : windows.inserted) here.shape.insert(here.shape.begin() + axis, 1);
    const auto axes = static_cast<std::int64_t>(windows.axes.size());
    std::vector<Window> each(static_cast<std::size_t>(all[0]), here);
    for (std::int64_t row = 0; row < all[0]; ++row) {
      Window& window = each[static_cast<std::size_t>(row)];
      window.bytes += row * product_of(here.shape) * width_;
      for (std::int64_t i = 0; i < axes; ++i)
        window.starts[static_cast<std::size_t>(windows.axes[static_cast<std::size_t>(i)])] = starts.get_int(row * axes + i);
    }
    copy(each);
  }

 private:
  static std::int64_t product_of(const std::vector<std::int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  const Graph& graph() const { return run_.program->graph; }
  std::vector<std::int64_t> sizes(const std::vector<Size>& shape) const {
    std::vector<std::int64_t> all;
    for (const Size& extent : shape) all.push_back(extent(run_.sizes.data()));
    return all;
  }
  /// Of the next operand.
  std::vector<std::int64_t> shape() const { return sizes(shapes(step_)[next_ + 1]); }
  const std::byte* memory() const { return run_.memory[static_cast<std::size_t>(step_.operands[next_])]; }
  Array integers(ValueId value) const {
    const DType dtype = graph().type(value).dtype;
    std::vector<std::int64_t> shape = this->shape();
    const auto bytes = static_cast<std::size_t>(bytes_for(dtype, product_of(shape)));
    return Array(dtype, std::move(shape), {memory(), bytes}, nullptr);
  }
  void copy(std::span<const Window> windows) const {
    copy_windows(windows, shape_, width_, run_.memory[static_cast<std::size_t>(step_.results[0])], *run_.pool);
  }

  const Step& step_;
  const RunState& run_;
  const std::vector<std::int64_t> shape_;
  const std::int64_t width_;
  std::size_t next_ = 0;  // of the step's operands
};

Launch launch_of(const StateUpdate& update) {
  std::vector<ValueId> reads = update.operands();
  reads.insert(reads.begin(), update.state);
  return launch_with("state_update", {-1, 0}, std::move(reads), {update.result}, update);
}

struct StateUpdateClaim final : Claim {
  std::unique_ptr<GraphClaim> start(Draft& draft) const override {
    return claim_state_updates(draft, [](const StateUpdate&) { return true; }, launch_of);
  }
};

}  // namespace

const Claim& state_update_claim() {
  static const StateUpdateClaim claim;
  return claim;
}

void prepare_step(const StateUpdate& update, Step& step, const Preparation& given) {
  step.results = {given.slot_of(update.state)};
  std::vector<ValueId> values = update.operands();
  for (ValueId v : values) step.operands.push_back(given.slot_of(v));
  values.insert(values.begin(), update.state);
  Shapes shapes;
  for (ValueId v : values) {
    std::vector<Size>& shape = shapes.emplace_back();
    for (const Dim& dim : given.program.graph.type(v).shape) shape.push_back(given.sizes(dim));
  }
  step.found = std::make_shared<const Shapes>(std::move(shapes));
}

void run_step(const StateUpdate& update, const Step& step, const RunState& run) {
  StateWriter write(step, update, run);
  for (const auto& window : update.windows) std::visit(write, window);
}

}  // namespace rlx::cpu
