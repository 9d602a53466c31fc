#include "formats/web/web_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/array_type.h"
#include "ir/sources.h"
#include "ir/symbols.h"
#include "lowering/kernel_step.h"
#include "lowering/slots.h"
#include "ops/control/control.h"
#include "runtime/coverage.h"
#include "runtime/executable.h"

namespace rlx {
namespace {

using json::Value;

std::string_view place_name(Slot::Place place) {
  constexpr std::string_view names[] = {"input", "constant", "prepared", "arena", "output"};
  return names[static_cast<std::size_t>(place)];
}

std::string_view kind_name(InputKind kind) { return kind == InputKind::param ? "parameter" : kind == InputKind::state ? "state" : "input"; }

/// What the program and its regions share.
class SharedParts {
 public:
  SharedParts(const SavedGraph& saved, const std::vector<std::string>& symbols) : saved_(saved), symbols_(symbols) {}

  const SavedGraph& saved() const { return saved_; }

  /// A number, or terms: a coefficient and the places of symbols that it is multiplied by.
  Value size(const Dim& dim) const {
    if (dim.is_static()) return dim.value();
    Value terms = Value::array();
    for (const Dim::Term& term : dim.terms()) {
      Value mine = {term.coefficient};
      for (const auto& symbol : term.symbols) mine.push_back(std::ranges::find(symbols_, symbol->name) - symbols_.begin());
      terms.push_back(std::move(mine));
    }
    return terms;
  }

  std::size_t kernel_number(const GeneratedKernel& generated) {
    const KernelText& text = generated.text;
    const auto [known, is_new] = numbers_.emplace(text.name, numbers_.size());
    if (!is_new) return known->second;
    Value kernel = {{"name", text.name}, {"text", {texts_.size(), text.text.size()}}};
    texts_ += text.text;
    Value& writes = kernel["writes"] = Value::array();
    for (const KernelBuffer& buffer : generated.kernel.buffers) writes.push_back(buffer.written);
    if (!text.gathered.empty()) {
      kernel["element_bytes"] = text.element_bytes;
      Value& gathered = kernel["gathered"] = Value::array();
      for (const auto& elements : text.gathered) gathered.push_back(elements ? size(*elements) : Value());
    }
    kernels_.push_back(std::move(kernel));
    return known->second;
  }

  std::int64_t add_weights(const Array& weights) {
    const std::int64_t from = weight_bytes_;
    weight_bytes_ += (std::ssize(weights.bytes()) + web_alignment - 1) / web_alignment * web_alignment;
    weights_.push_back(weights);
    return from;
  }

  std::size_t add_region(Value region) {
    regions_.push_back(std::move(region));
    return regions_.size() - 1;
  }

  WebProgram finish(Value description) {
    description["kernels"] = std::move(kernels_);
    description["regions"] = std::move(regions_);
    description["weight_bytes"] = weight_bytes_;
    return {std::move(description), std::move(texts_), std::move(weights_)};
  }

 private:
  const SavedGraph& saved_;
  const std::vector<std::string>& symbols_;
  Value kernels_ = Value::array(), regions_ = Value::array();
  std::string texts_;
  std::vector<Array> weights_;
  std::map<std::string, std::size_t> numbers_;  // by name of the kernel
  std::int64_t weight_bytes_ = 0;
};

/// A program's launches with their memory: that of the graph, or of a region.
class PartWriter {
 public:
  PartWriter(SharedParts& shared, const Program& program, bool is_region)
      : shared_(shared),
        program_(program),
        is_region_(is_region),
        prepared_(is_region ? std::vector<bool>(program.launches.size(), false) : prepared_launches(program)),
        memory_(assign_slots(program, prepared_)) {}

  const std::vector<int>& outputs() const { return memory_.outputs; }

  void write(Value& to) {
    to["launches"] = launches();
    to["slots"] = slots();
  }

 private:
  Value launches() {
    Value all = Value::array();
    for (std::size_t l = 0; l < program_.launches.size(); ++l) {
      const Launch& launch = program_.launches[l];
      for (const Argument& argument : memory_.arguments[l]) used_.insert(argument.slot);
      Value mine = launch.kind == Launch::Kind::control ? control(launch) : kernels(launch);
      mine["prepared"] = static_cast<bool>(prepared_[l]);
      all.push_back(std::move(mine));
    }
    return all;
  }

  Value kernels(const Launch& launch) {
    if (launch.kind != Launch::Kind::kernel) refuse(launch, "no kernel of WebGPU computes it");
    Value all;
    Value& kernels = all["kernels"] = Value::array();
    for (const GeneratedKernel& kernel : launch.kernels) kernels.push_back(call(kernel));
    return all;
  }

  [[noreturn]] void refuse(const Launch& launch, std::string_view reason) const {
    fail("web: {} with a result of {} cannot be exported: {}", launch.name, program_.graph.type(launch.node).to_string(), reason);
  }

  Value control(const Launch& launch) {
    const Node& node = program_.graph.node(launch.node.node);
    Value all = {{"control", launch.name}, {"operands", slots_of(launch.reads)}, {"results", slots_of(launch.writes)}};
    if (node.op == &Op<Cond>::def()) {
      const Cond op = Op<Cond>::from(node.attrs);
      all["regions"] = Value::array({region(op.then), region(op.otherwise)});
    } else if (node.op == &Op<While>::def()) {
      const While op = Op<While>::from(node.attrs);
      all["regions"] = Value::array({region(op.condition), region(op.step)});
      all["carries"] = op.carries;
    } else {
      const Scan op = Op<Scan>::from(node.attrs);
      check_slices(op, launch);
      all["regions"] = Value::array({region(op.step)});
      all["carries"] = op.carries, all["scanned"] = op.scanned, all["length"] = shared_.size(op.length[0]), all["reverse"] = op.reverse;
    }
    return all;
  }

  /// Slices of packed types need not begin on a byte.
  void check_slices(const Scan& op, const Launch& launch) const {
    const auto is_packed_value = [&](ValueId v) { return is_packed(program_.graph.type(v).dtype); };
    const auto carries = static_cast<std::ptrdiff_t>(op.carries), scanned = static_cast<std::ptrdiff_t>(op.scanned);
    const auto moving = launch.reads.begin() + carries;
    if (std::any_of(moving, moving + scanned, is_packed_value) ||
        std::any_of(launch.writes.begin() + carries, launch.writes.end(), is_packed_value))
      refuse(launch, "its slices are of a packed type");
  }

  Value slots_of(const std::vector<ValueId>& values) const {
    Value all = Value::array();
    for (const ValueId value : values) all.push_back(memory_.by_root.at(program_.root(value)));
    return all;
  }

  std::size_t region(const Region& region) {
    PartWriter inner(shared_, *program_.regions.at(region.get()), true);
    Value all;
    inner.write(all);
    all["outputs"] = inner.outputs();
    return shared_.add_region(std::move(all));
  }

  Value call(const GeneratedKernel& generated) {
    Value all;
    all["kernel"] = shared_.kernel_number(generated);
    Value& buffers = all["buffers"] = Value::array();
    for (std::size_t b = 0; b < generated.kernel.buffers.size(); ++b)
      buffers.push_back({memory_.by_root.at(program_.root(generated.kernel.buffers[b].value)), generated.first[b]});
    Value& grid = all["grid"] = Value::array();
    for (const auto [loop, run] : generated.text.grid) grid.push_back({shared_.size(generated.kernel.extent(loop)), run});
    if (const auto& only = generated.only) all["only"] = {shared_.size(only->size), only->least, only->most};
    return all;
  }

  Value slots() {
    for (const int output : memory_.outputs) used_.insert(output);
    Value all = Value::array();
    for (int at = 0; at < std::ssize(memory_.slots); ++at) {
      const Slot& slot = memory_.at(at);
      Value mine = {{"place", place_name(slot.place)}, {"bits", info(slot.type.dtype).bits}, {"elements", shared_.size(slot.type.size())}};
      if (slot.place == Slot::Place::input) mine["input"] = slot.index;
      if (slot.place == Slot::Place::arena) {
        const ArenaBlock& block = memory_.blocks[slot.index];
        mine["first"] = block.first, mine["last"] = block.last;
      }
      if (const auto weights = weights_of(slot); weights && used_.contains(at)) mine["from"] = shared_.add_weights(*weights);
      all.push_back(std::move(mine));
    }
    return all;
  }

  std::optional<Array> weights_of(const Slot& slot) const {
    if (slot.place == Slot::Place::constant) return *constant_value(program_.graph.node(static_cast<std::int32_t>(slot.index)));
    if (slot.place != Slot::Place::input || is_region_) return std::nullopt;
    const Input& input = shared_.saved().graph.inputs()[slot.index].first;
    if (input.kind == InputKind::input) return std::nullopt;
    if (!input.type.is_static()) fail("web: {} '{}' is {}, whose size is open", kind_name(input.kind), input.name, input.type.to_string());
    const auto value = shared_.saved().weights.find(input.name);
    if (value == shared_.saved().weights.end()) {
      if (input.kind == InputKind::state) return std::nullopt;  // zeros
      fail("web: parameter '{}' has no value", input.name);
    }
    if (!(type_of(value->second) == input.type))
      fail("web: {} '{}' is {}, its value {}", kind_name(input.kind), input.name, input.type.to_string(),
           type_of(value->second).to_string());
    return value->second;
  }

  SharedParts& shared_;
  const Program& program_;
  const bool is_region_;
  const std::vector<bool> prepared_;
  const ProgramSlots memory_;
  std::set<int> used_;  // slots that launches or outputs name
};

Value symbols_of(const Graph& graph, const Program& program) {
  const std::map<std::string, std::int64_t> bounds = all_symbols(graph);
  Value all = Value::array();
  for (const std::string& name : program.symbols) all.push_back({{"name", name}, {"bound", bounds.at(name)}});
  return all;
}

Value shape_of(const Type& type, const SharedParts& shared) {
  Value sizes = Value::array();
  for (const Dim& dim : type.shape) sizes.push_back(shared.size(dim));
  return sizes;
}

Value inputs_of(const Graph& graph, const SharedParts& shared) {
  Value all = Value::array();
  for (const auto& [input, value] : graph.inputs())
    all.push_back({{"name", input.name},
                   {"kind", kind_name(input.kind)},
                   {"dtype", name(input.type.dtype)},
                   {"shape", shape_of(input.type, shared)}});
  return all;
}

Value outputs_of(const Graph& graph, const std::vector<int>& slots, const SharedParts& shared) {
  Value all = Value::array();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto& [output, value] = graph.outputs()[i];
    all.push_back({{"name", output}, {"dtype", name(value.dtype())}, {"shape", shape_of(value.type(), shared)}, {"slot", slots[i]}});
  }
  return all;
}

}  // namespace

WebProgram make_web_program(const SavedGraph& saved) {
  check_runnable(saved.graph);
  const LoweredGraph lowered = lower_graph(saved.graph, {}, web_target());
  SharedParts shared(saved, lowered.program.symbols);
  PartWriter part(shared, lowered.program, false);
  json::Value all = {{"format", "rlx web program"}, {"version", 2}, {"name", saved.graph.name()}};
  all["symbols"] = symbols_of(saved.graph, lowered.program);
  all["inputs"] = inputs_of(saved.graph, shared);
  all["outputs"] = outputs_of(saved.graph, part.outputs(), shared);
  part.write(all);
  return shared.finish(std::move(all));
}

}  // namespace rlx
