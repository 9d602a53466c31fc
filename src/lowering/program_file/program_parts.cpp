#include "lowering/program_file/program_parts.h"

#include <algorithm>

#include "ir/sources.h"

namespace rlx {

template <class Way>
void list_parts(Way& way, Of<Way, Guard>& guard) {
  way.one_of("guard", guard.kind, Guard::Kind::zero), way("guard index", guard.index);
}

template <class Way>
void list_parts(Way& way, Of<Way, Expr>& expr) {
  way.one_of("expression", expr.kind, Expr::Kind::reduce), way("type", expr.dtype);
  way("number", expr.number), way("integer", expr.integer), way("buffer", expr.buffer);
  way("index", expr.index), way("last index", expr.last), way.one_of("scalar op", expr.op, ScalarOp::fma);
  way("arguments", expr.args), way("guards", expr.guards), way.one_of("reduction", expr.reduce, ReduceKind::prod);
  way("reduced variables", expr.variables), way("origin", expr.origin);
}

template <class Way>
void list_parts(Way& way, Of<Way, Variable>& variable) {
  way("extent", variable.extent), way("step", variable.step);
}

template <class Way>
void list_parts(Way& way, Of<Way, KernelBuffer>& buffer) {
  way("buffer value", buffer.value), way("buffer type", buffer.dtype), way("written", buffer.written), way("aligned", buffer.aligned);
  way("past caches", buffer.past_caches);
}

template <class Way>
void list_parts(Way& way, Of<Way, KernelStore>& store) {
  way("stored buffer", store.buffer), way("stored index", store.index), way("stored expression", store.value);
}

template <class Way>
void list_parts(Way& way, Of<Way, Kernel>& kernel) {
  way("buffers", kernel.buffers), way("variables", kernel.variables), way("loops", kernel.loops), way("expressions", kernel.exprs);
  way("stores", kernel.stores), way("symbols", kernel.symbols), way("tile", kernel.tile);
}

template <class Way>
void list_parts(Way& way, Of<Way, GridLoop>& loop) {
  way("grid loop", loop.loop), way("grid step", loop.step);
}

template <class Way, class T, std::size_t count>
void list_all(Way& way, const char* name, std::array<T, count>& all) {
  for (T& each : all) way(name, each);
}
template <class Way, class T, std::size_t count>
void list_all(Way& way, const char* name, const std::array<T, count>& all) {
  for (const T& each : all) way(name, each);
}

template <class Way>
void list_parts(Way& way, Of<Way, BoxMap>& map) {
  way("map buffer", map.buffer), way("map type", map.dtype), way("map first", map.first);
  list_all(way, "map extents", map.extents), list_all(way, "map strides", map.strides), list_all(way, "map box", map.box);
}

template <class Way>
void list_parts(Way& way, Of<Way, Rounds>& rounds) {
  way("rounds", rounds.size), way("share of rounds", rounds.share);
}

template <class Way>
void list_parts(Way& way, Of<Way, KernelText>& text) {
  way("kernel name", text.name), way("kernel text", text.text), way("grid", text.grid), way("element bytes", text.element_bytes);
  way("group", text.group), way("on-chip bytes", text.on_chip_bytes), way("maps", text.maps), way("gathered", text.gathered);
  way("rounds", text.rounds), way("text symbols", text.symbols);
}

template <class Way>
void list_parts(Way& way, Of<Way, SizeRange>& range) {
  way("chosen by", range.size), way("least", range.least), way("most", range.most);
}

template <class Way>
void list_parts(Way& way, Of<Way, GeneratedKernel>& kernel) {
  way("kernel", kernel.kernel), way("text", kernel.text), way("first elements", kernel.first), way("range", kernel.only);
}

namespace {

std::map<std::string_view, RegisterClaimed::Read>& readers() {
  static std::map<std::string_view, RegisterClaimed::Read> all;
  return all;
}

}  // namespace

RegisterClaimed::RegisterClaimed(std::string_view kind, Read read) { readers().emplace(kind, read); }

/// What a claim says of itself.
void list_parts(ProgramWriter& way, const std::shared_ptr<const Claimed>& claimed) {
  way("claimed", std::string(claimed ? claimed->kind() : std::string_view()));
  if (claimed) claimed->write(way);
}
void list_parts(ProgramReader& way, std::shared_ptr<const Claimed>& claimed) {
  std::string kind;
  way("claimed", kind);
  if (kind.empty()) return;
  const auto known = readers().find(kind);
  if (known == readers().end()) way.refuse("claimed", kind, "what this build has code for");
  claimed = known->second(way);
}

template <class Way>
void list_parts(Way& way, Of<Way, Launch>& launch) {
  way.one_of("launch kind", launch.kind, Launch::Kind::host), way("launch", launch.name);
  way("reads", launch.reads), way("writes", launch.writes), way("kernels", launch.kernels), way("claim", launch.claim);
  way("node", launch.node), way("claimed", launch.claimed), way("scratch", launch.scratch), way("arithmetic", launch.arithmetic);
  way("storing kernel", launch.storing), way("replaced", launch.replaced), way("packed", launch.packed);
}

namespace {

/// Whether what was read is in order; else Error.
class Check {
 public:
  Check(const ProgramReader& way, const Program& program) : way_(way), program_(program) {}

  void run() {
    note_inputs();
    views();
    for (const Launch& launch : program_.launches) check(launch);
    for (const auto& [name, value] : program_.graph.outputs()) known("output", value.id());
  }

 private:
  template <class T>
  void within(const char* name, T seen, std::size_t count, int least = 0) const {
    if (seen < least || seen >= static_cast<std::int64_t>(count))
      way_.refuse(name, std::to_string(seen), fmt::format("{}..{}", least, static_cast<std::int64_t>(count) - 1));
  }
  void in_graph(const char* name, ValueId value) const {
    within(name, value.node, program_.graph.size());
    within(name, value.result, program_.graph.node(value.node).results.size());
  }
  /// Something has computed it.
  void known(const char* name, ValueId value) const {
    if (!program_.packed.contains(value)) in_graph(name, value);
    if (!known_.count(program_.root(value))) way_.refuse(name, fmt::format("%{}.{}", value.node, value.result), "what is computed by then");
  }

  void note_inputs() {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(program_.graph.size()); ++id)
      if (const Node& node = program_.graph.node(id); is_input(node) || constant_value(node)) known_.insert({id, 0});
  }

  /// Each leads to one of an earlier node: no way through them is a circle.
  void views() const {
    for (const auto& [view, of] : program_.views) {
      in_graph("view", view), in_graph("viewed value", of);
      if (!(of < view)) way_.refuse("viewed value", fmt::format("%{}", of.node), fmt::format("nodes before %{}", view.node));
    }
  }

  void check(const Launch& launch) {
    for (ValueId value : launch.reads) known("read value", value);
    if (launch.writes.empty()) way_.refuse("writes", "nothing", "at least one value");
    for (ValueId value : launch.writes) {
      if (!launch.packed) in_graph("written value", value);
      known_.insert(program_.root(value));
    }
    if (launch.node.node >= 0) in_graph("node", launch.node);
    within("replaced", launch.replaced, launch.reads.size(), -1), within("storing kernel", launch.storing, launch.kernels.size(), -1);
    if (launch.kind == Launch::Kind::host || launch.kind == Launch::Kind::control) check_node(launch);
    if (launch.kind == Launch::Kind::claim && !launch.claimed) way_.refuse("claimed", "nothing", "what a claim computes");
    if (launch.kind == Launch::Kind::kernel && launch.kernels.empty()) way_.refuse("kernels", "none", "at least one");
    for (const GeneratedKernel& kernel : launch.kernels) check(launch, kernel);
  }

  /// Of the host: it computes all results of its node from its operands.
  void check_node(const Launch& launch) const {
    in_graph("node", launch.node);
    const Node& node = program_.graph.node(launch.node.node);
    if (launch.reads != node.operands || launch.writes.size() != node.results.size())
      way_.refuse("reads", fmt::format("{} values", launch.reads.size()), fmt::format("the {} operands", node.operands.size()));
  }

  void check(const Launch& launch, const GeneratedKernel& kernel) const {
    const Kernel& k = kernel.kernel;
    within("first elements", std::ssize(kernel.first), k.buffers.size() + 1, static_cast<int>(k.buffers.size()));
    for (const KernelBuffer& buffer : k.buffers) check_buffer(launch, buffer);
    for (const auto& [loop, step] : kernel.text.grid) {
      within("grid loop", loop, k.variables.size());
      if (step < 1) way_.refuse("grid step", std::to_string(step), "1 and more");
    }
    for (int loop : k.loops) within("loop", loop, k.variables.size());
    for (const KernelStore& store : k.stores)
      within("stored buffer", store.buffer, k.buffers.size()), within("stored expression", store.value, k.exprs.size()),
          index(k, k.exprs.size(), store.index);
    for (std::size_t i = 0; i < k.exprs.size(); ++i) check(k, i);
    for (const std::string& symbol : k.symbols) check_symbol(launch, symbol);
  }

  /// In memory that the launch reads or writes, or a tile on the way to what a claim computes.
  void check_buffer(const Launch& launch, const KernelBuffer& buffer) const {
    const auto is = [&](const auto& known) { return known.first == buffer.value; };
    if (std::ranges::any_of(launch.scratch, is)) return;
    in_graph("buffer value", buffer.value);
    const auto& values = buffer.written ? launch.writes : launch.reads;
    const auto same = [&](ValueId v) { return program_.root(v) == program_.root(buffer.value); };
    if (launch.kind == Launch::Kind::kernel && std::ranges::none_of(values, same))
      way_.refuse("buffer value", fmt::format("%{}", buffer.value.node), buffer.written ? "what the launch writes" : "what it reads");
  }

  void check_symbol(const Launch& launch, const std::string& symbol) const {
    if (launch.kind == Launch::Kind::kernel && std::ranges::find(program_.symbols, symbol) == program_.symbols.end())
      way_.refuse("kernel symbol", symbol, "symbols of the program");
  }

  void check(const Kernel& kernel, std::size_t id) const {
    const Expr& expr = kernel.exprs[id];
    if (expr.kind == Expr::Kind::load) within("buffer", expr.buffer, kernel.buffers.size());
    const std::size_t arguments = expr.kind == Expr::Kind::fma      ? 3
                                  : expr.kind == Expr::Kind::choose ? 2
                                  : expr.kind == Expr::Kind::reduce ? 1
                                                                    : 0;
    if (expr.args.size() < arguments) way_.refuse("arguments", std::to_string(expr.args.size()), std::to_string(arguments));
    for (ExprId argument : expr.args) within("argument", argument, id);
    for (int variable : expr.variables) within("reduced variable", variable, kernel.variables.size());
    index(kernel, id, expr.index);
    for (const Guard& guard : expr.guards) index(kernel, id, guard.index);
  }

  void index(const Kernel& kernel, std::size_t before, const Index& index) const {
    index.for_each_atom([&](const Atom& atom) {
      if (atom.kind == Atom::Kind::variable) within("variable", atom.id, kernel.variables.size());
      if (atom.kind == Atom::Kind::loaded) within("loaded expression", atom.id, before);
    });
  }

  const ProgramReader& way_;
  const Program& program_;
  std::set<ValueId> known_;
};

/// Each once, in the order of the nodes.
std::vector<Region> regions_of(const Graph& graph) {
  std::vector<Region> all;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id)
    for (const Attr& attr : graph.node(id).attrs)
      if (const auto* region = std::get_if<Region>(&attr); region && *region && std::ranges::count(all, *region) == 0)
        all.push_back(*region);
  return all;
}

/// All but the graph, which a region has already.
template <class Way>
void list_launches(Way& way, Of<Way, Program>& program) {
  way("symbols", program.symbols), way("launches", program.launches), way("views", program.views);
}

void write_launches(ProgramWriter& way, const Program& program) {
  list_launches(way, program);
  const std::vector<Region> regions = regions_of(program.graph);
  way("programs of regions", static_cast<std::int64_t>(program.regions.size()));
  for (std::size_t i = 0; i < regions.size(); ++i)
    if (const auto inner = program.regions.find(regions[i].get()); inner != program.regions.end())
      way("region", static_cast<std::int64_t>(i)), write_launches(way, *inner->second);
}

/// What is packed is a value of its own, of a size that is known.
void note_packed(const ProgramReader& way, Program& program) {
  for (const Launch& launch : program.launches) {
    if (!launch.packed) continue;
    if (launch.reads.size() != 1 || launch.writes.size() != 1)
      way.refuse("packed", fmt::format("{} from {} values", launch.writes.size(), launch.reads.size()), "one from one");
    const ValueId value = launch.writes[0];
    const bool is_new = value.node >= 0 && value.node < static_cast<std::int64_t>(program.graph.size()) &&
                        value.result >= static_cast<std::int64_t>(program.graph.node(value.node).results.size());
    if (!is_new || !launch.packed->is_static() || !program.packed.emplace(value, *launch.packed).second)
      way.refuse("packed", fmt::format("%{}.{}: {}", value.node, value.result, launch.packed->to_string()),
                 "a value that nothing else writes, of a size that is known");
  }
}

void read_launches(ProgramReader& way, Program& program) {
  way.graph = &program.graph;
  list_launches(way, program);
  note_packed(way, program);
  const std::vector<Region> regions = regions_of(program.graph);
  for (std::int64_t left = way.count("programs of regions"); left > 0; --left) {
    const std::int64_t number = way.integer("region", 0, std::ssize(regions) - 1);
    const Region& region = regions[static_cast<std::size_t>(number)];
    auto inner = std::make_shared<Program>(*region);
    read_launches(way, *inner);
    program.regions[region.get()] = std::move(inner);
  }
  way.graph = &program.graph;
  Check(way, program).run();
}

}  // namespace

void write_program(ProgramWriter& way, const Program& program) {
  way("graph", program.graph);
  write_launches(way, program);
}

Program read_program(ProgramReader& way) {
  Graph graph;
  way("graph", graph);
  Program program(std::move(graph));
  read_launches(way, program);
  return program;
}

}  // namespace rlx
