// C, OpenCL, CUDA and Metal against LLVM's code and the reference evaluator: every scalar op on every type, every op with a rule for
// kernels, and kernels with several loops, reductions, guards and run-time sizes.
#include <gtest/gtest.h>

#include "emit/compiled_cuda.h"
#include "emit/compiled_metal.h"
#include "emit/compiled_opencl.h"
#include "kernel/graph_kernel.h"
#include "kernel/scalar_ops.h"
#include "ops/sample_operands.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

struct Case {
  std::string name;
  Graph graph;
  std::map<std::string, Array> inputs;
  std::vector<double> tolerances;  // of each output against the reference, relative to its largest value; empty = exact
};

bool kernels_can_compute(const Graph& graph) {
  for (std::size_t n = 0; n < graph.size(); ++n)
    for (const Type& type : graph.node(static_cast<std::int32_t>(n)).results)
      if (!can_generate(type.dtype)) return false;
  return true;
}

/// A language of C's family, and how its kernels run here.
struct Language {
  std::string name;
  ScheduleOptions options;
  std::string compiler;
  KernelText (*text)(const Kernel& kernel);  // in C or C++
  bool has_f64 = true;

  bool has(const Kernel& kernel) const {
    const auto is_f64 = [](const auto& part) { return part.dtype == f64; };
    return has_f64 || !(std::ranges::any_of(kernel.buffers, is_f64) || std::ranges::any_of(kernel.exprs, is_f64));
  }

  /// Texts of C are files of their own; the others are one, as in a program.
  std::vector<KernelText> files_of(const std::map<std::string, KernelText>& texts) const {
    std::vector<KernelText> files;
    for (const auto& [name, text] : texts) {
      if (compiler.starts_with("cc ") || files.empty()) files.push_back(text);
      else files[0].text += text.text;
    }
    return files;
  }
};

constexpr ScheduleOptions vectors{.lanes = true, .vector = 16};

/// The kernel with a number that nobody asks for, and that 32 bits do not hold.
Kernel with_far_index(Kernel kernel) {
  Expr far;
  far.kind = Expr::Kind::position;
  far.dtype = i64;
  far.index = Dim(std::int64_t{1} << 40);
  kernel.add(std::move(far));
  return kernel;
}

const std::vector<Language>& languages() {
  static const std::vector<Language> all{
      {"C", {}, "cc -std=c11", [](const Kernel& kernel) { return emit_c(kernel); }},
      {"C with lanes and indices of 64 bits",
       {.lanes = true},
       "cc -std=c11",
       [](const Kernel& kernel) { return emit_c(with_far_index(kernel), {.lanes = true}); }},
      {"OpenCL", {.lanes = true}, "clang-19 -std=c11", [](const Kernel& kernel) { return opencl_as_c(kernel, emit_opencl(kernel)); }},
      {"OpenCL with vectors", vectors, "clang-19 -std=c11",
       [](const Kernel& kernel) { return opencl_as_c(kernel, emit_opencl(kernel, vectors)); }},
      {"CUDA",
       {.lanes = true},
       "c++ -x c++ -Wno-unknown-pragmas",
       [](const Kernel& kernel) { return cuda_as_cpp(kernel, emit_cuda(kernel)); }},
      {"Metal",
       {.lanes = true},
       "clang++-19 -x c++ -std=c++17 -Wno-unknown-attributes -Wno-pass-failed -I " RLX_FIXTURES "/../metal",
       [](const Kernel& kernel) { return metal_as_cpp(kernel, emit_metal(kernel)); },
       false},
  };
  return all;
}

using Results = std::vector<Array>;

void expect_agreement(const Case& c, const std::string& language, const Results& seen, const Results& by_llvm, const Results& wanted) {
  const bool exact = c.tolerances.empty();
  for (std::size_t o = 0; o < wanted.size(); ++o) {
    const std::string& output = c.graph.outputs()[o].first;
    for (std::int64_t i = 0; i < wanted[o].size(); ++i) {
      const double reference = wanted[o].get_double(i), value = seen[o].get_double(i), llvm = by_llvm[o].get_double(i);
      const double allowed = exact ? 0 : c.tolerances[o] * (1 + largest_magnitude(wanted[o]));
      ASSERT_TRUE(same_element(seen[o], by_llvm[o], i) || (!exact && std::fabs(value - llvm) <= allowed))
          << output << "[" << i << "]: " << language << " " << value << ", LLVM " << llvm;
      ASSERT_TRUE(same_element(seen[o], wanted[o], i) || (!exact && std::fabs(value - reference) <= allowed))
          << output << "[" << i << "]: " << language << " " << value << ", reference " << reference;
    }
  }
}

/// All dialects run all cases. They agree on every bit, but for float sums, which each may order and contract in its way.
void compare(const std::vector<Case>& cases) {
  std::vector<Kernel> kernels;
  std::vector<Results> by_llvm, wanted;
  for (const Case& c : cases) {
    kernels.push_back(kernel_of(c.graph));
    by_llvm.push_back(run_kernel(c.graph, kernels.back(), compile_llvm(kernels.back()), c.inputs));
    wanted.push_back(evaluate(c.graph, c.inputs));
  }
  for (const Language& language : languages()) {
    std::map<std::string, KernelText> distinct;
    std::vector<std::string> names;
    for (const Kernel& kernel : kernels) {
      names.emplace_back();
      if (!language.has(kernel)) continue;
      KernelText text = language.text(kernel);
      names.back() = text.name;
      distinct.emplace(text.name, std::move(text));
    }
    const CompiledC library(language.files_of(distinct), language.compiler);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      if (names[c].empty()) continue;
      SCOPED_TRACE(cases[c].name);
      const KernelFunction function = library.function(names[c]);
      expect_agreement(cases[c], language.name, run_kernel(cases[c].graph, kernels[c], function, cases[c].inputs, language.options),
                       by_llvm[c], wanted[c]);
    }
  }
}

constexpr std::int64_t count = 4000;

/// Numbers of every kind: patterns of random bits, small integers, and the borders of the type.
Array every_kind_of(DType t, std::mt19937_64& random) {
  Array array(t, {count});
  const auto bytes = static_cast<std::size_t>(info(t).bits) / 8;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    if (is_bool(t)) array.set_int(i, static_cast<std::int64_t>(bits & 1));
    else if (i % 3 == 0) array.set_double(i, static_cast<double>(bits % 9) - 4);
    else if (i % 3 == 1) array.set_double(i, (static_cast<double>(bits >> 11) * 0x1p-53 - 0.5) * 20);
    else std::memcpy(array.mutable_bytes().data() + static_cast<std::size_t>(i) * bytes, &bits, bytes);
    // A processor may set the quiet bit of a NaN on its way through a register, so all NaN are quiet ones from the start.
    if (is_float(t) && std::isnan(array.get_double(i))) array.set_double(i, NAN);
  }
  return array;
}

/// LLVM's code may round to bf16 by an instruction to which denormal numbers are zeros. Only kernels' threads make other code do so, too.
bool same_in_both(const Array& by_c, const Array& by_llvm, std::int64_t i) {
  if (same_element(by_c, by_llvm, i)) return true;
  const double value = by_c.get_double(i), flushed = by_llvm.get_double(i);
  return by_c.dtype() == bf16 && flushed == 0 && std::fabs(value) <= smallest_normal(bf16) && std::signbit(value) == std::signbit(flushed);
}

class ScalarOps : public testing::TestWithParam<DType> {};

/// In all languages that have f64, or in those that do not.
void expect_same_scalar_ops(DType t, bool has_f64) {
  std::vector<double> allowed;
  const Graph graph = scalar_ops_on(t, count, allowed, has_f64);
  std::mt19937_64 random(7);
  std::map<std::string, Array> inputs;
  inputs.emplace("x", every_kind_of(t, random));
  inputs.emplace("z", every_kind_of(t, random));
  inputs.emplace("w", every_kind_of(boolean, random));
  const Kernel kernel = kernel_of(graph);
  const Results by_llvm = run_kernel(graph, kernel, compile_llvm(kernel), inputs), wanted = evaluate(graph, inputs);
  for (const Language& language : languages()) {
    if (language.has_f64 != has_f64) continue;
    SCOPED_TRACE(language.name);
    const KernelText text = language.text(kernel);
    const CompiledC library({text}, language.compiler);
    const Results seen = run_kernel(graph, kernel, library.function(text.name), inputs, language.options);
    for (std::size_t o = 0; o < wanted.size(); ++o) {
      const std::string& name = graph.outputs()[o].first;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto operands = [&] { return fmt::format("{} of {} and {}", name, inputs["x"].get_double(i), inputs["z"].get_double(i)); };
        if (!same_in_both(seen[o], by_llvm[o], i)) {
          ADD_FAILURE() << operands() << ": " << seen[o].get_double(i) << ", LLVM " << by_llvm[o].get_double(i);
          break;
        }
        if (is_float(wanted[o].dtype()) ? ulps_off(seen[o], wanted[o], i) > allowed[o] : !same_element(seen[o], wanted[o], i)) {
          ADD_FAILURE() << operands() << ": " << seen[o].get_double(i) << ", reference " << wanted[o].get_double(i);
          break;
        }
      }
    }
  }
}

TEST_P(ScalarOps, AreTheSameInAllDialectsAndTheReference) {
  expect_same_scalar_ops(GetParam(), true);
  if (GetParam() != f64) expect_same_scalar_ops(GetParam(), false);
}

INSTANTIATE_TEST_SUITE_P(EveryType, ScalarOps, testing::ValuesIn(generated_types),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(CDialect, EveryOpWithARuleForKernelsOnItsSamples) {
  std::vector<Case> cases;
  for (const auto& [name, op] : op_registry()) {
    if (op->kind == OpKind::scalar || !(op->sources || op->address || op->loop)) continue;
    int number = 0;
    for (const Sample& sample : op->samples()) {
      Case c{fmt::format("{} sample {}", name, number++), Graph(), named(random_operands(sample, 3)), {}};
      std::vector<Type> types;
      for (const auto& operand : sample.operands) types.push_back(operand.type);
      const Values results = apply_op(c.graph, *op, attributes(*op, sample), inputs_for(c.graph, types));
      if (results.size() != 1 || !kernels_can_compute(c.graph)) continue;
      c.graph.output("y", results[0]);
      // Sums of at most 120 products, in another order than the reference's.
      if (op->loop && is_float(results[0].dtype())) c.tolerances = {4 * epsilon(results[0].dtype())};
      cases.push_back(std::move(c));
    }
  }
  EXPECT_GT(cases.size(), 40u);
  compare(cases);
}

Case make_case(std::string name, double tolerance) { return {std::move(name), Graph(), {}, {tolerance}}; }

TEST(CDialect, KernelsWithSeveralReductionsGuardsAndRunTimeSizes) {
  std::mt19937 random(11);
  std::vector<Case> cases;
  const Dim rows = Dim::symbol("rows", 64), columns = Dim::symbol("columns", 64);
  const auto values = [&](DType t, std::vector<std::int64_t> shape) {
    return random_array({t, Dims(shape.begin(), shape.end())}, -3, 3, random);
  };
  {
    Case c = make_case("softmax of rows", 8 * epsilon(f32));
    const Value x = c.graph.input("x", {rows, columns}, f32);
    const Value top = reduce_max(x, {1}, true), e = exp(x - top);
    c.graph.output("y", e / sum(e, {1}, true));
    c.inputs["x"] = values(f32, {7, 33});
    cases.push_back(std::move(c));
  }
  {
    Case c = make_case("normalised rows of bf16", 4 * epsilon(bf16));
    const Value x = c.graph.input("x", {rows, columns}, bf16), wide = cast(x, f32), n = sum(wide * 0.0 + 1.0, {1}, true);
    const Value mean = sum(wide, {1}, true) / n, centred = wide - mean;
    c.graph.output("y", cast(centred * rsqrt(sum(centred * centred, {1}, true) / n + 1e-5), bf16));
    c.inputs["x"] = values(bf16, {5, 40});
    cases.push_back(std::move(c));
  }
  {
    Case c = make_case("product of a padded, reversed matrix", 64 * epsilon(f32));
    const Value x = c.graph.input("x", {rows, 6}, f32), z = c.graph.input("z", {9, columns}, f32);
    c.graph.output("y", matmul(reverse(pad(x, {0, 1}, {0, 2}, {}, 0.5), {1}), z));
    c.inputs["x"] = values(f32, {4, 6});
    c.inputs["z"] = values(f32, {9, 21});
    cases.push_back(std::move(c));
  }
  {
    Case c = make_case("joined parts, transposed and scaled by what is looked up", 2 * epsilon(f64));
    const Value x = c.graph.input("x", {rows, 5}, f64), z = c.graph.input("z", {3, 5}, f64), which = c.graph.input("which", {5}, i32);
    const Value joined = transpose(concat({x, z, x}, 0), {1, 0});
    c.graph.output("y", joined * reshape(take(reshape(z, {15}), which), {5, 1}));
    c.inputs["x"] = values(f64, {8, 5});
    c.inputs["z"] = values(f64, {3, 5});
    Array order(i32, {5});
    for (std::int64_t i = 0; i < 5; ++i) order.set_int(i, i == 3 ? 99 : 14 - 2 * i);  // 99 is clipped
    c.inputs["which"] = order;
    cases.push_back(std::move(c));
  }
  {
    Case c = make_case("integers", 0);
    const Value x = c.graph.input("x", {rows, columns}, i16);
    c.graph.output("y", sum(x * x, {0}, true) + reduce_max(x, {0}, true));
    c.inputs["x"] = values(i16, {17, 9});
    cases.push_back(std::move(c));
  }
  compare(cases);
}

/// Blocks of results and vectors of terms or of columns, with sizes that neither divides.
TEST(CDialect, ProductsOfMatrices) {
  std::mt19937 random(13);
  std::vector<Case> cases;
  const Dim rows = Dim::symbol("rows", 64), terms = Dim::symbol("terms", 4096);
  const auto add = [&](const std::string& name, const auto& build, std::vector<std::int64_t> x, std::vector<std::int64_t> z,
                       DType of_z = f32) {
    Case c = make_case(name, 64 * epsilon(f32));
    c.graph.output("y", build(c.graph));
    c.inputs["x"] = random_array({f32, Dims(x.begin(), x.end())}, -1, 1, random);
    c.inputs["z"] = random_array({of_z, Dims(z.begin(), z.end())}, -1, 1, random);
    cases.push_back(std::move(c));
  };
  const auto by_transposed = [](const Value& x, const Value& z) { return matmul(x, transpose(z, {1, 0})); };
  add("terms side by side", [&](Graph& g) { return by_transposed(g.input("x", {rows, 83}, f32), g.input("z", {21, 83}, f32)) * 2.0; },
      {10, 83}, {21, 83});
  add("whole blocks", [&](Graph& g) { return by_transposed(g.input("x", {8, 64}, f32), g.input("z", {16, 64}, f32)) + 1; }, {8, 64},
      {16, 64});
  add("many terms", [&](Graph& g) { return by_transposed(g.input("x", {rows, terms}, f32), g.input("z", {9, terms}, f32)); }, {5, 2101},
      {9, 2101});
  add("one row", [&](Graph& g) { return by_transposed(g.input("x", {1, 40}, f32), g.input("z", {37, 40}, f32)); }, {1, 40}, {37, 40});
  add("columns side by side", [&](Graph& g) { return abs(matmul(g.input("x", {rows, terms}, f32), g.input("z", {terms, 37}, f32))); },
      {11, 70}, {70, 37});
  add("whole vectors of columns", [&](Graph& g) { return matmul(g.input("x", {8, 20}, f32), g.input("z", {20, 32}, f32)); }, {8, 20},
      {20, 32});
  add("batches", [&](Graph& g) { return matmul(g.input("x", {2, rows, 35}, f32), g.input("z", {2, 35, 20}, f32)); }, {2, 9, 35},
      {2, 35, 20});
  for (const DType t : {f16, bf16}) {
    add(
        "terms of " + std::string(name(t)),
        [&](Graph& g) { return by_transposed(g.input("x", {rows, 50}, f32), cast(g.input("z", {9, 50}, t), f32)); }, {7, 50}, {9, 50}, t);
    add(
        "columns of " + std::string(name(t)),
        [&](Graph& g) { return matmul(g.input("x", {rows, 9}, f32), cast(g.input("z", {9, 50}, t), f32)); }, {9, 9}, {9, 50}, t);
  }
  compare(cases);
}

TEST(CDialect, TileKernelsComputeTheirRangesAndNothingElse) {
  Graph graph;
  const Value x = graph.input("x", {6, 8}, f32);
  graph.output("y", x * 2.0 + 1.0);
  Kernel kernel = kernel_of(graph);
  kernel.tile = true;
  const KernelText text = emit_c(kernel);
  const CompiledC library({text});
  std::vector<float> in(48), expected(48, -1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  for (std::size_t row = 1; row < 4; ++row)
    for (std::size_t column = 2; column < 7; ++column) expected[row * 8 + column] = in[row * 8 + column] * 2 + 1;
  const std::vector<std::int64_t> sizes{1, 4, 2, 7};
  for (const auto function : {library.function(text.name), compile_llvm(kernel)}) {
    std::vector<float> out(48, -1);
    std::vector<void*> buffers;
    for (const KernelBuffer& buffer : kernel.buffers) buffers.push_back(buffer.written ? out.data() : in.data());
    function(buffers.data(), sizes.data(), 0, 0);
    EXPECT_EQ(out, expected);
  }
}

TEST(CDialect, IndicesHave32BitsWhereTheseSuffice) {
  struct Form {
    std::string narrow, wide;
    KernelText (*print)(const Kernel& kernel);
  };
  const std::vector<Form> forms{
      {"for (int32_t i1 ", "for (int64_t i1 ", [](const Kernel& kernel) { return emit_c(kernel); }},
      {"const int position ", "const long position ", [](const Kernel& kernel) { return emit_opencl(kernel); }},
      {"const int position ", "const long long position ", [](const Kernel& kernel) { return emit_cuda(kernel); }},
      {"const int position ", "const long position ", [](const Kernel& kernel) { return emit_metal(kernel); }},
  };
  const auto doubled = [](const Dim& size) {
    Graph graph;
    graph.output("y", graph.input("x", {size, 3}, f32) * 2.0);
    return kernel_of(graph);
  };
  constexpr std::int64_t little = 1 << 20, much = std::int64_t{1} << 31;
  const auto expect = [&](const std::string& wanted, const std::string& text) { EXPECT_NE(text.find(wanted), std::string::npos) << text; };
  for (const auto& [narrow, wide, print] : forms) {
    for (const Dim& size : {Dim(little), Dim::symbol("S", little)}) expect(narrow, print(doubled(size)).text);
    for (const Dim& size : {Dim(much), Dim::symbol("S", much)}) expect(wide, print(doubled(size)).text);
  }
}

TEST(CDialect, EqualKernelsHaveEqualNames) {
  const auto text = [] { return emit_c(pointwise(ScalarOp::exp, {f32}, f32)); };
  EXPECT_EQ(text().name, text().name);
  EXPECT_NE(text().name, emit_c(pointwise(ScalarOp::exp, {f64}, f64)).name);
  EXPECT_NE(text().text.find("void " + text().name + "(void* const* buffers"), std::string::npos);
}

}  // namespace
}  // namespace rlx::test
