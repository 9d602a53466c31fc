#include "runtime/run.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backends/cpu/machine/denormals.h"
#include "base/files/mapped_file.h"
#include "base/progress.h"
#include "ir/array_type.h"
#include "ir/sources.h"

namespace rlx {

Run::Run(Executable::State& state, std::vector<const Array*> inputs, std::vector<bool> weights, Bindings bindings,
         std::shared_ptr<BoundParameters> parameters, const std::vector<const Target*>& targets, bool keeps)
    : state_(state),
      storage_(state.session->storage),
      parameters_(std::move(parameters)),
      inputs_(std::move(inputs)),
      weights_(std::move(weights)) {
  run_.program = &state_.program;
  run_.pool = &state_.session->pool;
  run_.level = cpu::level_of(state_.session->target);
  run_.bindings = std::move(bindings);
  for (const std::string& symbol : state_.program.symbols) run_.symbols.push_back(run_.bindings.at(symbol));
  run_.sizes = state_.sizes.values(run_.symbols);
  run_.run_region = [this](const Region& region, std::span<const Array> operands) { return run_region(region, operands); };
  run_.run_loop = [this](const Node& node, std::span<const Array> operands, std::span<std::byte* const> results) {
    return run_loop(node, operands, results);
  };
  run_.tuned = state_.session->tuned.get();
  run_.packed = [this](const cpu::Step& step, const cpu::PackWeights& pack) { return packed(step, pack); };
  plan_ = state_.plan_at(run_.bindings);
  if (storage_.on_host()) arena_ = state_.arenas->borrow();
  else
    for (const std::int64_t bytes : plan_->chunks) device_arena_.push_back(storage_.device().allocate(bytes));
  make_outputs(targets, keeps);
  place_slots();
}

void Run::make_outputs(const std::vector<const Target*>& targets, bool keeps) {
  for (const auto& [name, value] : state_.source.outputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : value.shape()) shape.push_back(dim.evaluate(run_.bindings));
    const Target* target = targets.empty() ? nullptr : targets[outputs_.size()];
    if (const Slot& slot = state_.memory.at(state_.memory.outputs[outputs_.size()]);
        slot.place == Slot::Place::input && state_.updates_state[slot.index]) {
      outputs_.push_back(*inputs_[slot.index]);
      output_bytes_.push_back(nullptr);
      continue;
    }
    if (!target) {
      const std::size_t state = state_.state_of_output[outputs_.size()];
      outputs_.push_back(state < inputs_.size()
                             ? state_.next_state(state, keeps ? inputs_[state] : nullptr, value.dtype(), std::move(shape))
                             : storage_.make(value.dtype(), std::move(shape)));
      output_bytes_.push_back(address(outputs_.back()));
      continue;
    }
    outputs_.emplace_back(value.dtype(), std::move(shape), target->bytes(), nullptr);
    output_bytes_.push_back(target->bytes().data());
  }
  direct_.resize(outputs_.size());
  for (std::size_t i = 0; i < direct_.size(); ++i) direct_[i] = output_bytes_[i] == nullptr;  // states that lie where they lay
}

const std::byte* Run::in_arena(std::int64_t offset) const {
  if (arena_) return arena_->data() + offset;
  return device_arena_[static_cast<std::size_t>(offset / plan_->piece)].get() + offset % plan_->piece;
}

void Run::place_slots() {
  run_.weights.resize(state_.memory.slots.size());
  run_.memory.reserve(state_.memory.slots.size());
  for (const Slot& slot : state_.memory.slots) {
    const std::byte* bytes = nullptr;
    switch (slot.place) {
      case Slot::Place::input:
        bytes = inputs_[slot.index]->bytes().data();
        if (weights_[slot.index]) keep_owner(run_.memory.size(), *inputs_[slot.index]);
        break;
      case Slot::Place::constant:
        bytes = weights_in(slot).bytes().data();
        keep_owner(run_.memory.size(), weights_in(slot));
        break;
      case Slot::Place::prepared: break;
      case Slot::Place::arena: bytes = in_arena(plan_->offsets[slot.index]); break;
      case Slot::Place::output:
        bytes = output_bytes_[slot.index];
        direct_[slot.index] = true;
        break;
    }
    run_.memory.push_back(const_cast<std::byte*>(bytes));
  }
}

/// Regions know their weights by what owns the bytes; nobody else asks.
void Run::keep_owner(std::size_t slot, const Array& weights) {
  if (state_.regions.empty() || !weights.owner()) return;
  run_.weights[slot] = weights.owner();
  weight_owners_.insert(weights.owner().get());
}

/// Puts the prepared values in their slots.
void Run::prepare() {
  if (!parameters_) return;
  prepared_ = parameters_->prepared();
  if (!prepared_->complete) run_missing();
  place_prepared();
}

/// Computes the prepared values that are missing.
void Run::run_missing() {
  const std::scoped_lock lock(parameters_->preparing);
  prepared_ = parameters_->prepared();
  if (prepared_->complete) return;
  const auto mine = std::make_shared<Prepared>(*prepared_);
  for (const PackedProduct& product : state_.prepared.products)  // what another program packed needs not be computed
    if (const cpu::Step& step = state_.steps[product.step]; !mine->panels[product.step])
      mine->panels[product.step] = panels_of(step, origins().of(step.weights));
  const auto launches = mine->missing(state_.prepared);
  // A launch that runs again may also write what is there: other runs are reading those bytes, so it gets memory of its own.
  for (const PreparedLaunch* launch : launches)
    for (std::size_t value : launch->writes) {
      const Type& type = state_.prepared.values[value].type;
      mine->arrays[value] = std::make_shared<Array>(storage_.make(type.dtype, static_shape(type)));
    }
  prepared_ = mine;
  place_prepared();
  for (const PreparedLaunch* launch : launches) {
    run_launch(*launch->step);
    for (ValueId v : launch->step->launch->reads)
      if (const Slot& slot = state_.memory.at(state_.slot_of(v)); slot.place == Slot::Place::input && storage_.on_host())
        release_mapped_pages(inputs_[slot.index]->bytes());
  }
  prepared_ = parameters_->add(state_.prepared, [&](Prepared& all) {
    all.arrays = mine->arrays;
    for (std::size_t step = 0; step < all.panels.size(); ++step)
      if (!all.panels[step]) all.panels[step] = mine->panels[step];
    all.complete = true;
  });
  if (!storage_.on_host()) parameters_->let_go_but(state_.runs_read);
}

void Run::place_prepared() {
  static std::byte nowhere;  // of values that are only read as panels
  for (std::size_t value = 0; value < prepared_->arrays.size(); ++value) {
    const auto slot = static_cast<std::size_t>(state_.prepared.values[value].slot);
    const std::shared_ptr<const Array>& array = prepared_->arrays[value];
    run_.memory[slot] = array ? const_cast<std::byte*>(array->bytes().data()) : &nowhere;
    if (array) keep_owner(slot, *array);
  }
}

void Run::execute() {
  const cpu::FlushDenormals flush;
  prepare();
  if (!storage_.on_host()) return execute_on_device();
  const std::span<const cpu::Step> steps(state_.steps);
  auto ahead = steps.size();
  for (std::size_t i = 0; i < steps.size();) {
    if (state_.is_prepared[i]) {
      ++i;
      continue;
    }
    if (const std::size_t next = state_.next_product[i]; ahead != next || i == state_.experts_known[next]) {
      ahead = next;
      read_ahead(next, i >= state_.experts_known[next]);
    }
    i += cpu::execute_joined(steps.subspan(i), run_);
  }
  if (packs_) report_packing(state_.prepared.products.size());
}

void Run::run_launch(const cpu::Step& step) {
  if (storage_.on_host()) cpu::execute(step, run_);
  else run_on_device(step);
}

/// Tells the pool what the loop of products from this one on will read; nothing where that is not known yet.
void Run::read_ahead(std::size_t product, bool knows_experts) {
  ahead_.clear();
  const std::size_t end = product + state_.steps[product].joined;
  for (; knows_experts && prepared_ && product < std::min(end, prepared_->panels.size()); ++product)
    if (const auto& panels = prepared_->panels[product])
      if (const cpu::Step& step = state_.steps[product]; !step.work->add_weights_ahead(step, *panels, run_, ahead_))
        ahead_.push_back(panels->bytes);
  run_.pool->read_ahead(ahead_);
}

void Run::report_packing(std::size_t done) {
  packs_ = true;
  report_progress("packing", done, state_.prepared.products.size());
}

double Run::seconds_of(const cpu::Step& step) {
  if (!storage_.on_host()) return storage_.device().seconds([&] { run_on_device(step); });
  const auto begin = std::chrono::steady_clock::now();
  run_launch(step);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Run::time(int repeats, std::vector<LaunchReport>& reports) {
  const cpu::FlushDenormals flush;
  prepare();
  for (int r = 0; r < repeats; ++r)
    for (std::size_t i = 0; i < state_.steps.size(); ++i) {
      if (state_.is_prepared[i]) continue;
      run_.scratch_bytes = &reports[i].scratch_bytes;
      run_.blocks = &reports[i].blocks;
      const double seconds = seconds_of(state_.steps[i]);
      if (r == 0 || seconds < reports[i].seconds) reports[i].seconds = seconds;
    }
  run_.scratch_bytes = nullptr;
  run_.blocks = nullptr;
}

/// Outputs that are not computed where they are wanted.
void Run::copy_outputs() {
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (!direct_[i])
      storage_.copy(output_bytes_[i], {run_.memory[static_cast<std::size_t>(state_.memory.outputs[i])], outputs_[i].bytes().size()});
}

std::vector<Array> Run::results() {
  copy_outputs();
  return std::move(outputs_);
}

std::vector<bool> Run::weights_among(std::span<const Array> operands) const {
  std::vector<bool> marks;
  for (const Array& operand : operands) marks.push_back(weight_owners_.count(operand.owner().get()) > 0);
  return marks;
}

std::vector<Array> Run::run_region(const Region& region, std::span<const Array> operands) {
  std::vector<const Array*> inputs;
  for (const Array& operand : operands) inputs.push_back(&operand);
  Run inner(*state_.regions.at(region.get()), std::move(inputs), weights_among(operands), run_.bindings, nullptr);
  inner.execute();
  return inner.results();
}

/// The panels of a right operand that stays from run to run; null for one that does not, and for a product that runs once.
std::shared_ptr<const cpu::Panels> Run::packed(const cpu::Step& step, const cpu::PackWeights& pack) {
  const auto index = static_cast<std::size_t>(&step - state_.steps.data());
  if (state_.is_prepared[index]) return nullptr;
  const Slot& slot = state_.memory.at(step.weights);
  if (slot.place == Slot::Place::input && !weights_[slot.index]) return packed_in_loop(index, slot.index, pack);
  if (!parameters_) return packed_in_region(step, weights_in(slot), pack);
  if (!prepared_->panels[index]) {
    auto panels = shared_panels(step, origins().of(step.weights), weights_in(slot), pack);
    prepared_ = parameters_->add(state_.prepared, [&](Prepared& all) { all.panels[index] = std::move(panels); });
    const auto& products = state_.prepared.products;
    report_packing(static_cast<std::size_t>(
        std::ranges::count_if(products, [&](const PackedProduct& each) { return prepared_->panels[each.step] != nullptr; })));
  }
  return prepared_->panels[index];
}

/// The panels of these numbers that a program of the session holds already; null: none does.
std::shared_ptr<const cpu::Panels> Run::panels_of(const cpu::Step& step, const Origin& origin) const {
  return origin.name.empty() ? nullptr : state_.session->packed.find(panel_key(step, origin));
}

std::string Run::panel_key(const cpu::Step& step, const Origin& origin) const {
  return fmt::format("{}: {}", origin.name, step.work->panel_layout(step, run_.level));
}

/// The panels of `weights`, which come from there.
std::shared_ptr<const cpu::Panels> Run::shared_panels(const cpu::Step& step, const Origin& origin, const Array& weights,
                                                      const cpu::PackWeights& pack) const {
  auto panels = panels_of(step, origin);
  if (panels) return panels;
  panels = pack(weights);
  release_mapped_pages(weights.bytes());  // or a file's weights would be in memory twice
  if (!origin.name.empty()) state_.session->packed.add(panel_key(step, origin), panels, origin.arrays);
  return panels;
}

Origins& Run::origins() {
  if (!origins_) origins_.emplace(state_, parameters_->arrays);
  return *origins_;
}

/// The panels of what every step of a loop reads, for as long as the loop runs; null for what moves, and outside of loops.
std::shared_ptr<const cpu::Panels> Run::packed_in_loop(std::size_t step, std::size_t input, const cpu::PackWeights& pack) {
  if (stays_in_loop_.empty() || !stays_in_loop_[input]) return nullptr;
  auto& panels = loop_panels_[step];
  if (!panels) panels = pack(*inputs_[input]);
  return panels;
}

std::shared_ptr<const cpu::Panels> Run::packed_in_region(const cpu::Step& step, const Array& weights, const cpu::PackWeights& pack) {
  {
    const std::scoped_lock lock(state_.mutex);
    const auto it = state_.packed.find(&step);
    const bool is_known = it != state_.packed.end() && it->second.weights.bytes().data() == weights.bytes().data();
    if (is_known && it->second.weights.owner() == weights.owner()) return it->second.panels;  // a new owner may bring new numbers
  }
  auto panels = shared_panels(step, origin_of(weights), weights, pack);
  const std::scoped_lock lock(state_.mutex);
  state_.packed[&step] = {weights, panels};
  return panels;
}

const Array& Run::weights_in(const Slot& slot) const {
  switch (slot.place) {
    case Slot::Place::input: return *inputs_[slot.index];
    case Slot::Place::prepared: return *prepared_->arrays[slot.index];
    default: {
      const auto node = static_cast<std::int32_t>(slot.index);
      return storage_.on_host() ? *constant_value(state_.program.graph.node(node)) : state_.constants.at(node);
    }
  }
}

}  // namespace rlx
