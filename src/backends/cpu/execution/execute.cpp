#include "backends/cpu/execution/execute.h"

#include <algorithm>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/machine/denormals.h"

namespace rlx::cpu {
namespace {

int slot_of_packed(const Preparation& given, ValueId value, std::int64_t bytes) {
  const auto known = given.program.packed.find(value);
  if (known == given.program.packed.end())
    fail("program: packed weights are %{}.{} (allowed: what a launch packs)", value.node, value.result);
  if (!(known->second == Type{u8, {bytes}})) fail("program: packed weights are {} (allowed: u8[{}])", known->second.to_string(), bytes);
  return given.slot_of(value);
}

}  // namespace

void prepare_packing(Step& step, const Preparation& given, std::int64_t bytes) {
  step.operands = {given.slot_of(step.launch->reads[0])}, step.results = {slot_of_packed(given, step.launch->writes[0], bytes)};
}

void prepare_weights(Step& step, const Preparation& given, ValueId packed, std::int64_t bytes) {
  step.weights = slot_of_packed(given, packed, bytes), step.weight_bytes = bytes;
}

std::byte* workspace(const RunState& run, std::size_t bytes) {
  if (run.report) run.report->scratch_bytes = bytes;
  static thread_local std::size_t size = 0;
  static thread_local AlignedBuffer buffer;
  if (bytes > size) {
    buffer = AlignedBuffer();  // before the larger one is taken
    size = 0;
    buffer = AlignedBuffer(bytes);
    size = bytes;
  }
  return buffer.data();
}

namespace {

void run_kernel(const KernelStep& step, KernelFunction function, const RunState& run) {
  const auto buffers = step.places<void*>(run.memory);
  const std::int64_t count = step.positions(run.sizes.data());
  double work = 0;
  for (const auto& [runs, operations] : step.work) work += static_cast<double>(runs(run.sizes.data())) * operations;
  constexpr double worth_a_thread = 32768;  // operations: a few microseconds
  auto grain = static_cast<std::int64_t>(std::max(1.0, worth_a_thread / std::max(1.0, work)));
  constexpr std::int64_t line = 64;  // elements: parts of a flat kernel then begin on a line of the caches, whatever the type
  if (grain > line) grain = (grain + line - 1) / line * line;
  run.pool->parallel_for(count, grain,
                         [&](std::int64_t begin, std::int64_t end, int) { function(buffers.data(), run.symbols.data(), begin, end); });
}

/// A step with those that are joined to it.
void execute(std::span<const Step> steps, const RunState& run) {
  const Step& step = steps.front();
  if (step.work) return step.work->run(steps, run);
  if (step.launch->kind != Launch::Kind::kernel) return run.run_other(step);
  for (std::size_t i = 0; i < step.kernels.size(); ++i) run_kernel(step.kernels[i], step.launch->kernels[i].function, run);
}

class Steps final : public HostProgram {
 public:
  Steps(const Preparation& given, std::vector<bool> prepared) : prepared_(std::move(prepared)) {
    for (const Launch& launch : given.program.launches) {
      Step& step = steps_.emplace_back();
      step.launch = &launch;
      if (launch.kind == Launch::Kind::claim) step.work = dynamic_cast<const Work*>(launch.claimed.get());
      if (step.work) step.work->prepare(step, given);
      else static_cast<LaunchStep&>(step) = prepare_launch(launch, given.sizes, given.slot_of);
    }
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i].work) steps_[i].joined = steps_[i].work->joined(std::span(steps_).subspan(i));
    find_next_products();
    find_experts(given);
  }

  void run(const RunState& run) const override {
    const FlushDenormals flush;
    const std::span<const Step> steps(steps_);
    WeightsAhead ahead;
    auto next = steps.size();
    for (std::size_t i = 0; i < steps.size();) {
      if (prepared_[i]) {
        ++i;
        continue;
      }
      if (next != next_product_[i] || i == experts_known_[next]) {
        next = next_product_[i];
        read_ahead(next, i >= experts_known_[next], ahead, run);
      }
      execute(steps.subspan(i, steps[i].joined), run);
      i += steps[i].joined;
    }
  }

  void run_launch(std::size_t launch, const RunState& run) const override {
    const FlushDenormals flush;
    execute({&steps_[launch], 1}, run);
  }

 private:
  void find_next_products() {
    std::vector<std::size_t> products;
    for (std::size_t step = 0; step < steps_.size(); ++step)
      if (!prepared_[step] && steps_[step].weights >= 0) products.push_back(step);
    next_product_.assign(steps_.size(), products.empty() ? 0 : products.front());
    std::size_t loop = 0, end = 0;  // of the steps of the last loop
    for (const std::size_t product : products) {
      if (product < end) continue;
      for (std::size_t step = loop; end > 0 && step < product; ++step) next_product_[step] = product;
      loop = product, end = loop + steps_[loop].joined;
    }
  }

  void find_experts(const Preparation& given) {
    experts_known_.assign(steps_.size(), 0);
    for (std::size_t step = 0; step < steps_.size(); ++step)
      if (steps_[step].experts >= 0)
        for (std::size_t before = step; before-- > 0 && experts_known_[step] == 0;)
          for (ValueId written : given.program.launches[before].writes)
            if (given.slot_of(written) == steps_[step].experts) experts_known_[step] = before + 1;
  }

  /// Tells the pool what the loop of products from this one on will read; nothing where that is not known yet.
  void read_ahead(std::size_t product, bool knows_experts, WeightsAhead& ahead, const RunState& run) const {
    ahead.clear();
    if (knows_experts && !run.inner)
      for (const Step& step : std::span(steps_).subspan(product, steps_[product].joined))
        if (step.weights >= 0 && !step.work->add_weights_ahead(step, run, ahead))
          ahead.emplace_back(run.memory[static_cast<std::size_t>(step.weights)], static_cast<std::size_t>(step.weight_bytes));
    run.pool->read_ahead(ahead);
  }

  std::vector<Step> steps_;
  std::vector<bool> prepared_;              // by step, like what follows
  std::vector<std::size_t> next_product_;   // that with weights which begins the next loop of such, behind the last one the first
  std::vector<std::size_t> experts_known_;  // before which step it is known which matrices a product reads
};

}  // namespace

std::unique_ptr<HostProgram> make_steps(const Preparation& given, const std::vector<bool>& prepared) {
  return std::make_unique<Steps>(given, prepared);
}

}  // namespace rlx::cpu
