#include "passes/cut.h"

#include <algorithm>

#include "ir/graph_data.h"
#include "ir/sources.h"
#include "ops/scalar/scalar.h"
#include "passes/run_invariant.h"

namespace rlx {
namespace {

/// To store an element and to load it again, in additions of a vector unit.
constexpr double store_and_load = 32;
/// What a value may cost and still be computed in each of several kernels that read it.
constexpr double cheap = 6;
/// What it costs to read another value of the same size.
constexpr double read = 1;
/// What loading a value costs that the cache holds for all runs; the scale of a batch norm, 1 / sqrt(variance + eps), costs more.
constexpr double load = 4;

int work(const Node& node) { return node.op->kind == OpKind::scalar ? rlx::work(static_cast<ScalarOp>(node.op->scalar)) : 0; }

double elements(const Graph& graph, ValueId v) { return static_cast<double>(graph.type(v).size().upper()); }

/// True for a cast to a larger type: better stored as its operand, which takes less memory.
bool widens(const Graph& graph, const Node& node) {
  return node.op->scalar == static_cast<int>(ScalarOp::cast) &&
         info(graph.type(node.operands[0]).dtype).bits < info(node.results[0].dtype).bits;
}

/// Whether some elements of a structure op come from nowhere, as those around a padded value: each read of it is then a choice.
bool is_filled(const Graph& graph, ValueId v) {
  const Node& node = graph.node(v.node);
  if (!node.op->sources || node.operands.size() != 1) return false;
  std::vector<Index> at;
  for (const Dim& extent : node.results[0].shape) at.push_back(Index::variable(static_cast<int>(at.size()), extent));
  const Type& operand = graph.type(node.operands[0]);
  return node.op->sources(node.attrs, {&operand, 1}, node.results[0], at).size() > 1;
}

}  // namespace

Cut::Cut(const Graph& graph, const std::function<bool(const Node&)>& can_generate, const HostReads& host_reads, std::int64_t on_chip_row,
         bool fuse)
    : graph_(graph), on_chip_row_(on_chip_row), places_(graph.size(), 1) {
  find_users();
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
    if (!live(id) || is_source({id, 0})) continue;
    const Node& node = graph.node(id);
    const bool generated = can_generate(node);
    if (generated && fuse) continue;
    for (std::size_t r = 0; r < node.results.size(); ++r) stored_.insert({id, static_cast<std::int32_t>(r)});
    if (generated) continue;
    host_.insert(id);
    for (std::size_t i = 0; i < node.operands.size(); ++i) stored_.insert(host_reads(node, i));
  }
  for (const auto& [name, value] : graph.outputs()) stored_.insert(value.id());
  store_invariant();
  must_store_ = stored_;
}

bool Cut::is_source(ValueId v) const { return is_input(graph_.node(v.node)) || constant_value(graph_.node(v.node)); }

void Cut::find_users() {
  live_.assign(graph_.size(), false);
  for (const auto& [name, value] : graph_.outputs()) live_[static_cast<std::size_t>(value.id().node)] = true;
  for (auto id = static_cast<std::int32_t>(graph_.size()); id-- > 0;) {
    if (!live(id)) continue;
    for (ValueId operand : graph_.node(id).operands) {
      live_[static_cast<std::size_t>(operand.node)] = true;
      auto& list = users_[operand];
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }
  for (auto& [value, list] : users_) std::reverse(list.begin(), list.end());
}

/// Stores what is computed from parameters alone, where kernels that are not would compute it again in every run: where that costs more
/// than a load, and gives no more elements than it reads, unless it sums. Where it is not stored itself, as behind structure ops and casts
/// to larger types, its operands may be.
void Cut::store_invariant() {
  const std::vector<bool> invariant = run_invariant_nodes(graph_);
  const std::vector<double> cost = costs();
  std::vector<double> read(graph_.size(), 0);  // elements of the largest stored value that each is computed from
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
    double& most = read[static_cast<std::size_t>(id)];
    if (is_stored({id, 0})) most = elements(graph_, {id, 0});
    else
      for (ValueId operand : graph_.node(id).operands) most = std::max(most, read[static_cast<std::size_t>(operand.node)]);
  }
  std::vector<bool> wanted(graph_.size(), false);  // by something that is not the same in every run, perhaps through structure ops
  for (auto id = static_cast<std::int32_t>(graph_.size()); id-- > 0;) {
    const ValueId v{id, 0};
    const auto at = static_cast<std::size_t>(id);
    if (!live(id)) continue;
    const Node& node = graph_.node(id);
    const bool moves = (node.op->sources && node.operands.size() == 1) || widens(graph_, node);
    if (node.op->address && !invariant[at]) continue;  // it reads a few elements of a table: they are computed where they are read
    const bool here = invariant[at] && wanted[at] && !is_stored(v);
    const bool grows = !node.op->loop && elements(graph_, v) > read[at];
    if (here && !moves && !grows && cost[at] > load) stored_.insert(v);
    else if (here || !invariant[at])
      for (ValueId operand : node.operands) wanted[static_cast<std::size_t>(operand.node)] = true;
  }
}

void Cut::share(const std::vector<std::vector<ValueId>>& regions) {
  std::map<ValueId, ValueId> region_end;
  for (const auto& region : regions)
    for (ValueId v : region) region_end[v] = region.back();
  const std::set<ValueId> before = stored_;
  too_long_ = share_repeated(region_end);
  if (!too_long_.empty()) {
    stored_ = before;
    share_repeated(region_end);
  }
  const std::size_t unbounded = stored_.size();
  bound_kernels(region_end);
  if (stored_.size() > unbounded) share_repeated(region_end);  // what was in one kernel may be in several now
}

/// Stores what several kernels, or several loops of one, would compute at a higher cost than reading it; in kernels that were too long also
/// what one loop computes at several indices. Returns those that are still too long.
std::set<ValueId> Cut::share_repeated(const std::map<ValueId, ValueId>& region_end) {
  Readers kernels, loops;
  std::map<ValueId, int> lengths;  // of kernels
  const auto stored = [this](ValueId v) { return is_stored(v); };
  const std::vector<double> cost = costs(), element_cost = element_costs(), place_cost = place_costs(graph_, stored);
  const std::vector<bool> left = left_to_operands(cost);  // what is stored below lies behind what it asks for
  Places places(graph_, stored);
  for (auto id = static_cast<std::int32_t>(graph_.size()); id-- > 0;) {
    const ValueId v{id, 0};
    if (!live(id)) continue;
    if (const auto end = region_end.find(v); end != region_end.end() || is_stored(v)) {
      if (!is_stored(v)) find_readers(v, region_end, kernels, loops);
      places.visit(id, end != region_end.end() ? end->second : v);
      continue;
    }
    find_readers(v, region_end, kernels, loops);
    const std::set<ValueId>&my_kernels = kernels[v], &my_loops = loops[v];
    const auto at = static_cast<std::size_t>(id);
    const Places::Reads reads = places.reads(v);
    places_[at] = std::max(1, static_cast<int>(reads.places));
    const bool in_long_one = std::ranges::any_of(my_kernels, [&](ValueId kernel) { return too_long_.count(kernel) > 0; });
    if (!(widens(graph_, graph_.node(id)) && !is_stored(graph_.node(id).operands[0]))) {
      if (is_first_stage(v, my_loops) || (is_read_around(v) && (cost[at] > 0 || is_filled(graph_, v)))) stored_.insert(v);
      const bool often = !row_fits(v) && element_cost[at] * static_cast<double>(my_loops.size() - 1) > store_and_load;
      if (often || (my_kernels.size() > 1 && cost[at] > cheap && !left[at])) stored_.insert(v);
      if (in_long_one && is_repeated(v, reads, place_cost[at])) stored_.insert(v);
    }
    if (in_long_one && is_stored(v)) too_long_.insert(v);  // its kernel has what was too long in theirs
    if (!is_stored(v))
      for (ValueId kernel : my_kernels) lengths[kernel] += length(v) + (places.are_too_many(v) ? longest_kernel : 0);
    places.visit(id, is_stored(v) ? std::optional(v) : std::nullopt);
  }
  std::erase_if(lengths, [](const auto& entry) { return entry.second <= longest_kernel; });
  std::set<ValueId> too_long;
  for (const auto& [kernel, length] : lengths) too_long.insert(kernel);
  return too_long;
}

/// What a value adds to a kernel that computes it: it is as many expressions as there are places where it is read.
int Cut::length(ValueId v) const {
  constexpr int choice = 4;
  const Node& node = graph_.node(v.node);
  const int choices = node.op->sources && node.operands.size() > 1 ? static_cast<int>(node.operands.size()) - 1 : 0;
  return places_[static_cast<std::size_t>(v.node)] * (1 + work(node) + choice * choices);
}

/// The kernels and the loops in which a value is computed, from those of its users.
void Cut::find_readers(ValueId v, const std::map<ValueId, ValueId>& region_end, Readers& kernels, Readers& loops) const {
  std::set<ValueId>&my_kernels = kernels[v], &my_loops = loops[v];
  for (std::int32_t user : users_.at(v)) {
    const ValueId u{user, 0};
    const auto end = region_end.find(u);
    const bool is_end = end != region_end.end() || is_stored(u);
    const std::set<ValueId> last{end != region_end.end() ? end->second : u};
    const auto &its_kernels = is_end ? last : kernels[u], &its_loops = is_end || graph_.node(user).op->loop ? last : loops[u];
    my_kernels.insert(its_kernels.begin(), its_kernels.end());
    my_loops.insert(its_loops.begin(), its_loops.end());
  }
}

/// True for what one loop computes at so many indices, or so often for one that counts, that loads are cheaper, and kernels stay small.
/// What only moves elements leaves that to what it moves, unless it has more places than that.
bool Cut::is_repeated(ValueId v, const Places::Reads& reads, double cost) const {
  constexpr std::size_t most_places = 32;
  constexpr double most_repeats = 2.5;
  const Node& node = graph_.node(v.node);
  if (reads.places > most_places) return true;
  const bool moves = node.op->sources && node.operands.size() == 1;
  return !moves && reads.repeats > most_repeats && (reads.repeats - 1) * cost > store_and_load;
}

/// True for a large reduction that is only reduced further, to next to nothing: stored, it is shared by threads, as one reduction never is.
bool Cut::is_first_stage(ValueId v, const std::set<ValueId>& loops) const {
  constexpr double fewest_terms = 1 << 16, fewest_results = 16, most_results = 4;
  const Node& node = graph_.node(v.node);
  if (!node.op->loop || elements(graph_, v) < fewest_results || elements(graph_, node.operands[0]) < fewest_terms) return false;
  return std::all_of(loops.begin(), loops.end(),
                     [&](ValueId reader) { return graph_.node(reader.node).op->loop && elements(graph_, reader) <= most_results; });
}

/// True for what structure ops alone read, each element more than twice on average, as the windows of a convolution without a sum do: a
/// kernel would compute it anew for each of them.
bool Cut::is_read_around(ValueId v) const {
  constexpr std::size_t fewest_readers = 4;
  const auto& readers = users_.at(v);
  double reads = 0;
  for (std::int32_t user : readers) {
    if (!graph_.node(user).op->sources || graph_.node(user).operands.size() != 1) return false;
    reads += elements(graph_, {user, 0});
  }
  return readers.size() >= fewest_readers && reads > 2 * elements(graph_, v);
}

bool Cut::row_fits(ValueId v) const {
  const Type& type = graph_.type(v);
  return type.rank() > 0 && type.shape.back().upper() <= on_chip_row_;
}

/// By node, as long as no operand is stored: true for a cheap step whose dear operands are smaller, or read elsewhere too and stored for
/// that. They are the ones to store.
std::vector<bool> Cut::left_to_operands(const std::vector<double>& cost) const {
  std::vector<bool> left(graph_.size(), false);
  const auto settles = [&](ValueId operand, ValueId v) {
    if (is_stored(operand) || cost[static_cast<std::size_t>(operand.node)] <= cheap) return true;
    if (users_.at(operand).size() > 1) return !left[static_cast<std::size_t>(operand.node)];
    // Behind structure ops, such as a broadcast, the value itself may be smaller.
    while (graph_.node(operand.node).op->sources && graph_.node(operand.node).operands.size() == 1 && !is_stored(operand))
      operand = graph_.node(operand.node).operands[0];
    return elements(graph_, operand) < elements(graph_, v);
  };
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
    const Node& node = graph_.node(id);
    left[static_cast<std::size_t>(id)] = live(id) && work(node) <= 4 && !node.op->loop &&
                                         std::ranges::all_of(node.operands, [&](ValueId operand) { return settles(operand, {id, 0}); });
  }
  return left;
}

/// Work to compute one element from stored values; a reduction counts as dear.
std::vector<double> Cut::costs() const {
  std::vector<double> cost(graph_.size(), 0);
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
    const Node& node = graph_.node(id);
    if (is_stored({id, 0})) continue;
    double total = work(node) + (node.op->loop ? 1000 : 0);
    for (ValueId operand : node.operands)
      total += is_stored(operand) && elements(graph_, operand) >= elements(graph_, {id, 0}) && node.op->kind == OpKind::scalar
                   ? read
                   : cost[static_cast<std::size_t>(operand.node)];
    cost[static_cast<std::size_t>(id)] = total;
  }
  return cost;
}

/// Work that is done for each element: without what a kernel computes once for many, in front of a broadcast or in another loop.
std::vector<double> Cut::element_costs() const {
  std::vector<double> cost(graph_.size(), 0);
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
    const Node& node = graph_.node(id);
    if (is_stored({id, 0}) || node.op->loop) continue;
    double total = work(node);
    for (ValueId operand : node.operands)
      if (elements(graph_, operand) >= elements(graph_, {id, 0})) total += cost[static_cast<std::size_t>(operand.node)];
    cost[static_cast<std::size_t>(id)] = total;
  }
  return cost;
}

/// Stores values so that no kernel is longer than `longest_kernel`.
void Cut::bound_kernels(const std::map<ValueId, ValueId>& region_end) {
  std::vector<std::vector<std::int32_t>> inside(graph_.size());  // the nodes that a kernel for this value would compute
  const auto size_of = [&](const std::vector<std::int32_t>& nodes) {
    int total = 0;
    for (std::int32_t id : nodes) total += length({id, 0});
    return total;
  };
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
    if (!live(id) || on_host(id) || is_source({id, 0})) continue;
    std::vector<ValueId> operands = graph_.node(id).operands;
    std::sort(operands.begin(), operands.end(), [&](ValueId a, ValueId b) {
      return inside[static_cast<std::size_t>(a.node)].size() < inside[static_cast<std::size_t>(b.node)].size();
    });
    std::vector<std::int32_t>& mine = inside[static_cast<std::size_t>(id)];
    mine = {id};
    for (ValueId operand : operands) {
      if (is_stored(operand)) continue;
      std::vector<std::int32_t> both;
      const auto& theirs = inside[static_cast<std::size_t>(operand.node)];
      std::set_union(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::back_inserter(both));
      if (size_of(both) <= longest_kernel || region_end.count(operand)) mine = std::move(both);
      else stored_.insert(operand);
    }
    for (ValueId operand : operands)
      if (users_.at(operand).back() == id) inside[static_cast<std::size_t>(operand.node)] = {};
  }
}

}  // namespace rlx
