#include "formats/web/web_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/array_type.h"
#include "ir/sources.h"
#include "lowering/kernel_step.h"
#include "lowering/slots.h"
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

class WebProgramWriter {
 public:
  explicit WebProgramWriter(const SavedGraph& saved)
      : saved_(saved),
        lowered_(lower_graph(saved.graph, {}, web_target())),
        prepared_(prepared_launches(program())),
        memory_(assign_slots(program(), prepared_)) {}

  WebProgram write() {
    Value& all = made_.description;
    all["format"] = "rlx web program";
    all["version"] = 1;
    all["name"] = saved_.graph.name();
    all["symbols"] = symbols();
    all["inputs"] = inputs();
    all["outputs"] = outputs();
    all["launches"] = launches();
    all["kernels"] = std::move(kernels_);
    all["slots"] = slots();
    all["weight_bytes"] = weight_bytes_;
    return std::move(made_);
  }

 private:
  const Program& program() const { return lowered_.program; }

  Value symbols() const {
    const std::map<std::string, std::int64_t> bounds = saved_.graph.symbols();
    Value all = Value::array();
    for (const std::string& name : program().symbols) all.push_back({{"name", name}, {"bound", bounds.at(name)}});
    return all;
  }

  /// A number, or terms: a coefficient and the places of symbols that it is multiplied by.
  Value size(const Dim& dim) const {
    if (dim.is_static()) return dim.value();
    Value terms = Value::array();
    for (const Dim::Term& term : dim.terms()) {
      Value mine = {term.coefficient};
      for (const auto& symbol : term.symbols)
        mine.push_back(std::ranges::find(program().symbols, symbol->name) - program().symbols.begin());
      terms.push_back(std::move(mine));
    }
    return terms;
  }
  Value shape(const Type& type) const {
    Value sizes = Value::array();
    for (const Dim& dim : type.shape) sizes.push_back(size(dim));
    return sizes;
  }

  Value inputs() const {
    Value all = Value::array();
    for (const auto& [input, value] : saved_.graph.inputs())
      all.push_back(
          {{"name", input.name}, {"kind", kind_name(input.kind)}, {"dtype", name(input.type.dtype)}, {"shape", shape(input.type)}});
    return all;
  }

  Value outputs() const {
    Value all = Value::array();
    for (std::size_t i = 0; i < memory_.outputs.size(); ++i) {
      const auto& [output, value] = saved_.graph.outputs()[i];
      all.push_back({{"name", output}, {"dtype", name(value.dtype())}, {"shape", shape(value.type())}, {"slot", memory_.outputs[i]}});
    }
    return all;
  }

  Value launches() {
    Value all = Value::array();
    for (std::size_t l = 0; l < program().launches.size(); ++l) {
      const Launch& launch = program().launches[l];
      if (launch.kind != Launch::Kind::kernel) refuse(launch);
      for (const Argument& argument : memory_.arguments[l]) used_.insert(argument.slot);
      Value kernels = Value::array();
      for (const GeneratedKernel& kernel : launch.kernels) kernels.push_back(call(kernel));
      all.push_back({{"prepared", static_cast<bool>(prepared_[l])}, {"kernels", std::move(kernels)}});
    }
    return all;
  }

  [[noreturn]] void refuse(const Launch& launch) const {
    const Type& type = program().graph.type(launch.node);
    fail("web: {} with a result of {} cannot be exported: {}", launch.name, type.to_string(),
         launch.kind == Launch::Kind::control ? "it chooses what runs, and a page only launches kernels"
                                              : "no kernel of WebGPU computes it");
  }

  Value call(const GeneratedKernel& generated) {
    Value all;
    all["kernel"] = kernel_number(generated);
    Value& buffers = all["buffers"] = Value::array();
    for (std::size_t b = 0; b < generated.kernel.buffers.size(); ++b)
      buffers.push_back({memory_.by_root.at(program().root(generated.kernel.buffers[b].value)), generated.first[b]});
    Value& grid = all["grid"] = Value::array();
    for (const auto [loop, run] : generated.text.grid) grid.push_back({size(generated.kernel.extent(loop)), run});
    if (const auto& only = generated.only) all["only"] = {size(only->size), only->least, only->most};
    return all;
  }

  std::size_t kernel_number(const GeneratedKernel& generated) {
    const KernelText& text = generated.text;
    const auto [known, is_new] = numbers_.emplace(text.name, numbers_.size());
    if (!is_new) return known->second;
    Value kernel = {{"name", text.name}, {"text", {made_.kernels.size(), text.text.size()}}};
    made_.kernels += text.text;
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

  Value slots() {
    for (const int output : memory_.outputs) used_.insert(output);
    Value all = Value::array();
    for (int at = 0; at < std::ssize(memory_.slots); ++at) {
      const Slot& slot = memory_.at(at);
      Value mine = {{"place", place_name(slot.place)}, {"bits", info(slot.type.dtype).bits}, {"elements", size(slot.type.size())}};
      if (slot.place == Slot::Place::input) mine["input"] = slot.index;
      if (slot.place == Slot::Place::arena) {
        const ArenaBlock& block = memory_.blocks[slot.index];
        mine["first"] = block.first, mine["last"] = block.last;
      }
      if (const auto weights = weights_of(slot); weights && used_.contains(at)) mine["from"] = add_weights(*weights);
      all.push_back(std::move(mine));
    }
    return all;
  }

  std::optional<Array> weights_of(const Slot& slot) const {
    if (slot.place == Slot::Place::constant) return *constant_value(program().graph.node(static_cast<std::int32_t>(slot.index)));
    if (slot.place != Slot::Place::input) return std::nullopt;
    const Input& input = saved_.graph.inputs()[slot.index].first;
    if (input.kind == InputKind::input) return std::nullopt;
    if (!input.type.is_static()) fail("web: {} '{}' is {}, whose size is open", kind_name(input.kind), input.name, input.type.to_string());
    const auto value = saved_.weights.find(input.name);
    if (value == saved_.weights.end()) {
      if (input.kind == InputKind::state) return std::nullopt;  // zeros
      fail("web: parameter '{}' has no value", input.name);
    }
    if (!(type_of(value->second) == input.type))
      fail("web: {} '{}' is {}, its value {}", kind_name(input.kind), input.name, input.type.to_string(),
           type_of(value->second).to_string());
    return value->second;
  }

  std::int64_t add_weights(const Array& weights) {
    const std::int64_t from = weight_bytes_;
    weight_bytes_ += (std::ssize(weights.bytes()) + web_alignment - 1) / web_alignment * web_alignment;
    made_.weights.push_back(weights);
    return from;
  }

  const SavedGraph& saved_;
  const LoweredGraph lowered_;
  const std::vector<bool> prepared_;
  const ProgramSlots memory_;
  WebProgram made_;
  Value kernels_ = Value::array();
  std::map<std::string, std::size_t> numbers_;  // by name of the kernel
  std::set<int> used_;                          // slots that launches or outputs name
  std::int64_t weight_bytes_ = 0;
};

}  // namespace

WebProgram make_web_program(const SavedGraph& saved) {
  check_runnable(saved.graph);
  return WebProgramWriter(saved).write();
}

}  // namespace rlx
