#include "lowering/outputs.h"

#include <algorithm>

#include "kernel/lanes.h"
#include "kernel/product_block.h"
#include "passes/cut.h"
#include "passes/run_invariant.h"

namespace rlx {

namespace {

using At = std::vector<Index>;

/// Whether `shape` has one element for each row of `whole`: its last axis is missing, or 1.
bool is_of_rows(const Dims& shape, const Dims& whole) {
  if (whole.empty()) return false;
  Dims rows(whole.begin(), whole.end() - 1);
  if (shape == rows) return true;
  rows.emplace_back(1);
  return shape == rows;
}

/// Where a value of this shape is computed by a kernel that is at these places of `whole`: there, or at that of the row.
std::vector<At> places_in(const Dims& shape, const Dims& whole, const std::vector<At>& places) {
  if (shape == whole) return places;
  At row(places[0].begin(), places[0].end() - 1);
  if (shape.size() == whole.size()) row.emplace_back(0);
  return {row};
}

/// A kernel whose innermost loop takes `step` elements at a time, of all elements or of those in a box. Nothing when the last axis is not a
/// multiple of them for sure.
std::optional<OutputKernel> build_in_steps(const Graph& graph, std::vector<ValueId> values, const Puller::IsStored& is_stored, int step,
                                           const Box* box = nullptr) {
  OutputKernel result{std::move(values), {}, {}};
  Kernel& kernel = result.kernel;
  const Dims shape = result.shape(graph);
  std::vector<At> places(static_cast<std::size_t>(step));
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const bool last = axis + 1 == shape.size();
    const Dim length = box ? Dim(box->end[axis] - box->begin[axis]) : shape[axis];
    const std::optional<Dim> extent = last ? Dim::exact_div(length, step) : length;
    if (!extent) return std::nullopt;
    const int id = kernel.add_variable(*extent);
    if (!box || !(*extent == Dim(1))) kernel.loops.push_back(id);  // a column has one loop
    const Index variable = Index::variable(id, *extent) + Index(box ? Dim(box->begin[axis]) : Dim(0));
    for (int i = 0; i < step; ++i) places[static_cast<std::size_t>(i)].push_back(last ? variable * Dim(step) + Index(i) : variable);
  }
  const auto own = [&](ValueId v) { return std::find(result.values.begin(), result.values.end(), v) != result.values.end(); };
  Puller puller(graph, kernel, [&](ValueId v) { return !own(v) && is_stored(v); });
  for (ValueId v : result.values)
    for (const At& at : places_in(graph.type(v).shape, shape, places)) {
      const ExprId value = puller.pull(v, at, true);
      kernel.stores.push_back({puller.buffer_of(v, true), flatten(at, graph.type(v).shape), value});
    }
  for (ValueId v : result.values)
    if (puller.computed_elsewhere(v, places_in(graph.type(v).shape, shape, places))) return std::nullopt;
  result.computed = puller.computed();
  return result;
}

/// True when a choice between two expressions, or a number, turns on whether the innermost variable is even.
bool alternates(const Kernel& kernel) {
  if (kernel.loops.empty()) return false;
  const int last = kernel.loops.back();
  const auto is_last = [&](const Atom& atom) { return atom.kind == Atom::Kind::variable && atom.id == last; };
  const auto turns = [&](const Index& index) {
    bool found = false;
    index.for_each_atom([&](const Atom& atom) {
      if (is_last(atom)) found = found || kernel.extent(last) == Dim(2);
      else if (atom.kind == Atom::Kind::remainder && atom.denominator == Dim(2))
        atom.numerator->for_each_atom([&](const Atom& inner) { found = found || is_last(inner); });
    });
    return found;
  };
  return std::ranges::any_of(kernel.exprs, [&](const Expr& e) {
    if (e.kind == Expr::Kind::position) return turns(e.index);
    return e.kind == Expr::Kind::choose && std::ranges::any_of(e.guards, [&](const Guard& guard) { return turns(guard.index); });
  });
}

}  // namespace

const Dims& OutputKernel::shape(const Graph& graph) const {
  const Dims* whole = &graph.type(values[0]).shape;
  for (ValueId v : values)
    if (is_of_rows(*whole, graph.type(v).shape)) whole = &graph.type(v).shape;
  return *whole;
}

std::optional<OutputKernel> build_outputs(const Graph& graph, std::vector<ValueId> values, const Puller::IsStored& is_stored) {
  auto result = build_in_steps(graph, values, is_stored, 1);
  if (!result || !alternates(result->kernel)) return result;
  auto in_pairs = build_in_steps(graph, std::move(values), is_stored, 2);
  return in_pairs ? in_pairs : result;
}

Kernel build_part(const Graph& graph, const OutputKernel& outputs, const Puller::IsStored& is_stored, const Box& box) {
  const auto is_read = [&](ValueId v) { return outputs.computed.count(v) == 0 && is_stored(v); };
  auto part = build_in_steps(graph, outputs.values, is_read, 1, &box);
  if (!part) fail_internal("outputs: a part of a kernel cannot be computed where the whole can");
  return std::move(part->kernel);
}

namespace {

class Merger {
 public:
  Merger(const Graph& graph, std::vector<Unit> units, const Puller::IsStored& is_stored, const std::function<ValueId(ValueId)>& root,
         const Caps& caps)
      : graph_(graph), units_(std::move(units)), is_stored_(is_stored), root_(root), caps_(caps), invariant_(run_invariant_nodes(graph)) {
    // What is the same in every run is there before anything else runs, and so need not keep a kernel that reads it from moving.
    std::ranges::stable_partition(units_, [&](const Unit& unit) { return is_invariant(writes(unit)); });
    for (std::size_t k = 0; k < units_.size(); ++k)
      for (ValueId v : writes(units_[k])) written_by_[root_(v)] = k;
  }

  std::vector<Unit> run(const std::set<ValueId>& outputs) {
    std::vector<bool> gone(units_.size(), false);
    for (std::size_t k = 0; k < units_.size(); ++k)
      if (units_[k].outputs && merge(k, gone)) gone[k] = true;
    std::vector<Unit> left;
    for (std::size_t k = 0; k < units_.size(); ++k)
      if (!gone[k]) left.push_back(std::move(units_[k]));
    drop_unread(left, outputs);
    return left;
  }

 private:
  static std::vector<ValueId> buffers(const OutputKernel& outputs, bool written) {
    std::vector<ValueId> values;
    for (const KernelBuffer& buffer : outputs.kernel.buffers)
      if (buffer.written == written) values.push_back(buffer.value);
    return values;
  }
  static std::vector<ValueId> reads(const Unit& unit) { return unit.outputs ? buffers(*unit.outputs, false) : unit.launch.reads; }
  static std::vector<ValueId> writes(const Unit& unit) { return unit.outputs ? unit.outputs->values : unit.launch.writes; }

  /// Moves kernel k into an earlier one of those that run after everything it reads is there.
  bool merge(std::size_t k, const std::vector<bool>& gone) {
    constexpr std::size_t window = 16;  // launches back; further ones no longer have their memory in a cache
    std::size_t earliest = 0;
    for (ValueId v : reads(units_[k]))
      if (auto it = written_by_.find(root_(v)); it != written_by_.end()) earliest = std::max(earliest, it->second);
    for (std::size_t t = k; t-- > earliest && k - t <= window;)
      if (!gone[t] && units_[t].outputs && try_merge(t, k)) return true;
    return false;
  }

  bool try_merge(std::size_t t, std::size_t k) {
    constexpr std::size_t most_outputs = 8;
    const OutputKernel &first = *units_[t].outputs, &second = *units_[k].outputs;
    const bool of_rows = first.shape(graph_) != second.shape(graph_);
    if (of_rows && (caps_.most_rounds > 0 || !fit_by_rows(first, second))) return false;  // a row's loop may be in the other's
    if (is_invariant(first.values) != is_invariant(second.values)) return false;          // one of them is computed once for all runs
    if (first.values.size() >= most_outputs || length(first.kernel) + length(second.kernel) > longest_kernel) return false;
    if (!share_memory(first, second) || (is_block(first.kernel) && is_block(second.kernel))) return false;
    std::vector<ValueId> values = first.values;
    values.insert(values.end(), second.values.begin(), second.values.end());
    auto merged = build_outputs(graph_, std::move(values), is_stored_);
    if (!merged || merged->kernel.buffers.size() > static_cast<std::size_t>(caps_.most_buffers) || reads_its_results(*merged) ||
        (of_rows && !reduces_rows(merged->kernel)))
      return false;
    for (const Recompute& r : recomputation(merged->kernel, graph_))
      if (r.factor > 1.5) return false;  // a value of the first that the second reads in a loop over its row
    for (ValueId v : second.values) written_by_[v] = t;
    units_[t].outputs = std::move(merged);
    return true;
  }
  /// Whether threads compute blocks of its sums, of which both, in the registers of one, would have fewer rows than the memory needs.
  bool is_block(const Kernel& kernel) const {
    if (!caps_.schedule.lanes || !caps_.schedule.products) return false;
    const auto block = product_block(kernel, free_variables(kernel), caps_.schedule.vector);
    return block && block->rows > 1;
  }
  /// Whether one has an element for each row of the other, which a kernel keeps while it goes over the row twice.
  bool fit_by_rows(const OutputKernel& first, const OutputKernel& second) const {
    const auto fits = [&](const OutputKernel& rows, const OutputKernel& whole) {
      const Dims& shape = whole.shape(graph_);
      const auto of_row = [&](ValueId v) { return is_of_rows(graph_.type(v).shape, shape); };
      if (!std::ranges::all_of(rows.values, of_row) || shape.back().upper() > on_chip_row) return false;
      return !in_blocks(rows.kernel) && !in_blocks(whole.kernel);
    };
    return fits(first, second) || fits(second, first);
  }
  static bool in_blocks(const Kernel& kernel) { return worth_blocks(kernel, free_variables(kernel)); }
  /// Whether the element of a row is found by a loop over that row, so that the grid is one of rows.
  static bool reduces_rows(const Kernel& kernel) { return is_reduced(kernel, kernel.loops.back()) && !in_blocks(kernel); }
  bool is_invariant(const std::vector<ValueId>& written) const {
    return !written.empty() && invariant_[static_cast<std::size_t>(written[0].node)];
  }
  /// True when a view of a result would be read from the memory that the kernel is filling.
  bool reads_its_results(const OutputKernel& outputs) const {
    std::set<ValueId> own;
    for (ValueId v : outputs.values) own.insert(root_(v));
    const auto read = buffers(outputs, false);
    return std::any_of(read.begin(), read.end(), [&](ValueId v) { return own.count(root_(v)) > 0; });
  }
  static int length(const Kernel& kernel) {
    int total = 0;
    for (const Expr& e : kernel.exprs) total += 1 + (e.kind == Expr::Kind::scalar ? work(e.op) : 0);
    return total;
  }
  bool share_memory(const OutputKernel& first, const OutputKernel& second) const {
    std::set<ValueId> known;
    for (const bool written : {false, true})
      for (ValueId v : buffers(first, written)) known.insert(root_(v));
    const auto read = buffers(second, false);
    return std::any_of(read.begin(), read.end(), [&](ValueId v) { return known.count(root_(v)) > 0; });
  }

  void drop_unread(std::vector<Unit>& units, const std::set<ValueId>& outputs) const {
    std::set<ValueId> read;
    for (const Unit& unit : units)
      for (ValueId v : reads(unit)) read.insert(root_(v));
    const auto is_read = [&](ValueId v) { return outputs.count(v) > 0 || read.count(v) > 0; };
    std::erase_if(units, [&](const Unit& unit) { return unit.outputs && std::ranges::none_of(unit.outputs->values, is_read); });
    for (Unit& unit : units) {
      if (!unit.outputs) continue;
      std::vector<ValueId> kept;
      std::ranges::copy_if(unit.outputs->values, std::back_inserter(kept), is_read);
      if (kept.size() < unit.outputs->values.size()) unit.outputs = rebuild(std::move(kept), unit.outputs->values);
    }
  }
  /// The kernel of `values` in which `inside` are computed as well.
  OutputKernel rebuild(std::vector<ValueId> values, const std::vector<ValueId>& inside) const {
    const auto stored = [&](ValueId v) { return std::find(inside.begin(), inside.end(), v) == inside.end() && is_stored_(v); };
    return *build_outputs(graph_, std::move(values), stored);
  }

  const Graph& graph_;
  std::vector<Unit> units_;
  const Puller::IsStored& is_stored_;
  const std::function<ValueId(ValueId)>& root_;
  const Caps& caps_;
  std::vector<bool> invariant_;
  std::map<ValueId, std::size_t> written_by_;
};

}  // namespace

std::vector<Unit> merge_outputs(const Graph& graph, std::vector<Unit> units, const Puller::IsStored& is_stored,
                                const std::function<ValueId(ValueId)>& root, const std::set<ValueId>& outputs, const Caps& caps) {
  return Merger(graph, std::move(units), is_stored, root, caps).run(outputs);
}

}  // namespace rlx
