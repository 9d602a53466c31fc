// Generated kernels on an OpenCL device against the reference: every scalar op on every type, every op with a rule for kernels.
#include "backends/opencl_device.h"
#include "kernel/graph_kernel.h"
#include "kernel/scalar_ops.h"
#include "ops/sample_operands.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace opencl_generated_test {

constexpr ScheduleOptions with_lanes{.lanes = true};

struct Case {
  std::string name;
  Graph graph;
  std::map<std::string, Array> inputs;
  Kernel kernel = {};
};

class OpenClGenerated : public OpenClTest {
 protected:
  std::vector<Array> run(const Case& c, DeviceKernels& kernels, std::size_t number) const {
    const auto on_device = [&](std::span<const std::span<std::byte>> bytes, std::span<const std::int64_t> sizes, std::int64_t positions) {
      std::vector<std::shared_ptr<std::byte>> there;
      std::vector<std::byte*> addresses;
      for (const auto& buffer : bytes) {
        there.push_back(memory().allocate(std::ssize(buffer)));
        addresses.push_back(there.back().get());
        memory().upload(addresses.back(), buffer);
      }
      kernels.launch(number, addresses, sizes, positions);
      for (std::size_t b = 0; b < bytes.size(); ++b)
        if (c.kernel.buffers[b].written) memory().download(bytes[b], addresses[b]);
    };
    return run_kernel(c.graph, c.kernel, c.inputs, with_lanes, on_device);
  }
};

/// Small integers, numbers of the middle and what is no number; no denormal ones, which are zeros on devices.
Array usual_numbers(DType t, std::int64_t count, std::mt19937_64& random) {
  Array array(t, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    if (is_bool(t)) array.set_int(i, static_cast<std::int64_t>(bits & 1));
    else if (i % 2 == 0) array.set_double(i, static_cast<double>(bits % 9) - 4);
    else array.set_double(i, (static_cast<double>(bits >> 11) * 0x1p-53 - 0.5) * 20);
    if (is_float(t) && i % 50 == 0) array.set_double(i, i % 100 == 0 ? NAN : i % 150 == 0 ? INFINITY : -INFINITY);
  }
  return array;
}

class OpenClScalars : public OpenClGenerated, public testing::WithParamInterface<DType> {};

TEST_P(OpenClScalars, AreThoseOfTheReference) {
  constexpr std::int64_t count = 4000;
  std::vector<double> allowed;
  std::mt19937_64 random(7);
  Case c{"", scalar_ops_on(GetParam(), count, allowed), {}};
  c.kernel = kernel_of(c.graph);
  c.inputs.emplace("x", usual_numbers(GetParam(), count, random));
  c.inputs.emplace("z", usual_numbers(GetParam(), count, random));
  c.inputs.emplace("w", usual_numbers(boolean, count, random));
  const KernelText text = emit_opencl(c.kernel, with_lanes);
  const auto kernels = memory().load({&text, 1}, {});
  const auto seen = run(c, *kernels, 0), wanted = evaluate(c.graph, c.inputs);
  for (std::size_t o = 0; o < wanted.size(); ++o)
    for (std::int64_t i = 0; i < count; ++i) {
      const DType t = wanted[o].dtype();
      const double value = seen[o].get_double(i), reference = wanted[o].get_double(i);
      const bool is_zero = is_float(t) && std::fabs(value) <= smallest_normal(t) && std::fabs(reference) <= smallest_normal(t);
      if (is_zero || (is_float(t) ? ulps_off(seen[o], wanted[o], i) <= allowed[o] : same_element(seen[o], wanted[o], i))) continue;
      ADD_FAILURE() << c.graph.outputs()[o].first << " of " << c.inputs["x"].get_double(i) << " and " << c.inputs["z"].get_double(i) << ": "
                    << value << ", reference " << reference;
      break;
    }
}

INSTANTIATE_TEST_SUITE_P(EveryType, OpenClScalars, testing::ValuesIn(generated_types),
                         [](const auto& info) { return std::string(name(info.param)); });

bool kernels_can_compute(const Graph& graph) {
  for (std::size_t n = 0; n < graph.size(); ++n)
    for (const Type& type : graph.node(static_cast<std::int32_t>(n)).results)
      if (!can_generate(type.dtype)) return false;
  return true;
}

std::vector<Case> cases_of_samples() {
  std::vector<Case> cases;
  for (const auto& [name, op] : op_registry()) {
    if (op->kind == OpKind::scalar || !(op->sources || op->address || op->loop)) continue;
    for (const Sample& sample : op->samples()) {
      Case c{fmt::format("{} sample {}", name, cases.size()), Graph(), named(random_operands(sample, 3))};
      std::vector<Type> types;
      for (const auto& operand : sample.operands) types.push_back(operand.type);
      const Values results = apply_op(c.graph, *op, attributes(*op, sample), inputs_for(c.graph, types));
      if (results.size() != 1 || !kernels_can_compute(c.graph)) continue;
      c.graph.output("y", results[0]);
      c.kernel = kernel_of(c.graph);
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

TEST_F(OpenClGenerated, OpsWithARuleForKernelsAreThoseOfTheReference) {
  const std::vector<Case> cases = cases_of_samples();
  EXPECT_GT(cases.size(), 40u);
  std::vector<KernelText> texts;
  for (const Case& c : cases) texts.push_back(emit_opencl(c.kernel, with_lanes));
  const auto kernels = memory().load(texts, {});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].name);
    const Array seen = run(cases[i], *kernels, i)[0], wanted = evaluate(cases[i].graph, cases[i].inputs)[0];
    // Sums of at most 120 products, in another order than the reference's.
    const double allowed = is_float(wanted.dtype()) ? 4 * epsilon(wanted.dtype()) * (1 + largest_magnitude(wanted)) : 0;
    for (std::int64_t e = 0; e < wanted.size(); ++e)
      ASSERT_TRUE(same_element(seen, wanted, e) || std::fabs(seen.get_double(e) - wanted.get_double(e)) <= allowed)
          << e << ": " << seen.get_double(e) << ", reference " << wanted.get_double(e) << '\n'
          << texts[i].text;
  }
}

}  // namespace opencl_generated_test
}  // namespace rlx::test
