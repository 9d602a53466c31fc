// The attention claim: every combination of the op's contract against the reference in f64, at every level of this machine's CPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/tiles/tile_kernel.h"
#include "backends/cpu/machine/cpu_features.h"
#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace attention_test {

/// Axes of a mask or a bias, of (batch, head, query, key), that are not 1.
enum class Extent { none, keys, heads, all };

struct Case {
  AttentionOptions options;
  Extent mask = Extent::none, bias = Extent::none;
  bool positions = false;

  std::string name() const {
    return fmt::format("scale {} cap {} causal {} window {} mask {} bias {} positions {}", options.scale, options.softcap, options.causal,
                       options.window, static_cast<int>(mask), static_cast<int>(bias), positions);
  }
};

struct Sizes {
  std::int64_t batch, heads, kv_heads, queries, keys, features, value_features;
};

/// q, k, v, then mask, bias and positions where the case has them.
std::vector<Type> types_of(const Case& c, const Sizes& s, DType number) {
  std::vector<Type> types{{number, {s.batch, s.heads, s.queries, s.features}},
                          {number, {s.batch, s.kv_heads, s.keys, s.features}},
                          {number, {s.batch, s.kv_heads, s.keys, s.value_features}}};
  const auto add = [&](Extent extent, DType dtype) {
    if (extent == Extent::keys) types.push_back({dtype, {s.batch, 1, 1, s.keys}});
    if (extent == Extent::heads) types.push_back({dtype, {1, s.heads, 1, s.keys}});
    if (extent == Extent::all) types.push_back({dtype, {s.batch, s.heads, s.queries, s.keys}});
  };
  add(c.mask, boolean), add(c.bias, number);
  if (c.positions) types.push_back({i32, {s.batch, s.queries}});
  return types;
}

std::vector<Array> operands_of(const Case& c, const Sizes& s, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Array> arrays;
  for (const Type& type : types_of(c, s, f32)) {
    const bool counts = type.dtype == i32;
    arrays.push_back(random_array(type, is_bool(type.dtype) ? 0 : -2, is_bool(type.dtype) ? 1 : counts ? double(s.keys) : 2, random));
  }
  return arrays;
}

Value attend(const Case& c, const Values& x) {
  AttentionOptions options = c.options;
  std::size_t next = 3;
  if (c.mask != Extent::none) options.mask = x[next++];
  if (c.bias != Extent::none) options.bias = x[next++];
  if (c.positions) options.positions = x[next++];
  return attention(x[0], x[1], x[2], options);
}

Graph graph_of(const Case& c, std::span<const Type> types) {
  Graph graph;
  graph.output("y", attend(c, inputs_for(graph, types)));
  return graph;
}

/// The reference on the same numbers in f64.
Array exact(const Case& c, std::vector<Array> operands) {
  for (Array& x : operands)
    if (is_float(x.dtype())) x = array_of(f64, x.shape(), values_of(x));
  return run_all(operands, [&](const Values& x) { return Values{attend(c, x)}; })[0];
}

Session session_of(int threads) {
  SessionOptions options;
  options.cache_folder = "";
  options.threads = threads;
  return Session(Device::cpu(), options);
}

Array run(const Session& session, const Graph& graph, const std::vector<Array>& operands) {
  std::map<std::string, Feed> feeds;
  for (const auto& [name, array] : named(operands)) feeds.emplace(name, array);
  return session.compile(graph).run(feeds).at("y");
}

/// Scores of up to about 30 in f32 are off by some 2e-6, and so are the weights, of which each row adds up to 1; values are below 2.
constexpr double tolerance = 4e-6;

void expect_exact(const Array& seen, const Array& wanted) {
  ASSERT_EQ(seen.shape(), wanted.shape());
  for (std::int64_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(seen.get_double(i), wanted.get_double(i), tolerance) << "element " << i << " of " << wanted.size();
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (double softcap : {0.0, 3.0})
    for (std::int64_t order : {0, 1, 2, 3})  // none, causal, window, both
      for (Extent mask : {Extent::none, Extent::keys, Extent::all})
        for (Extent bias : {Extent::none, Extent::heads, Extent::all})
          for (bool positions : {false, true}) {
            AttentionOptions options;
            options.softcap = softcap;
            options.causal = order % 2 == 1;
            options.window = order >= 2 ? 9 : 0;
            cases.push_back({options, mask, bias, positions});
          }
  return cases;
}

std::vector<Case> plain_cases() {
  AttentionOptions plain, causal, window;
  causal.causal = true, window.window = 20, window.scale = -0.3;
  return {{plain}, {causal}, {window}, {plain, Extent::keys}, {causal, Extent::none, Extent::all}};
}

TEST(AttentionClaim, EveryCombinationOfTheContract) {
  const Session session = session_of(2);
  const Sizes sizes{2, 6, 2, 17, 41, 12, 20};
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name());
    const auto operands = operands_of(c, sizes, 5);
    expect_exact(run(session, graph_of(c, types_of(c, sizes, f32)), operands), exact(c, operands));
  }
}

TEST(AttentionClaim, RaggedSizes) {
  const Session session = session_of(2);
  const std::pair<int, int> lengths[] = {{1, 1},   {1, 130},  {3, 17},  {17, 3},   {17, 63},
                                         {63, 17}, {63, 130}, {130, 1}, {130, 63}, {130, 130}};
  for (const Case& c : plain_cases())
    for (const auto& [queries, keys] : lengths) {
      SCOPED_TRACE(fmt::format("{} queries {} keys {}", c.name(), queries, keys));
      const Sizes sizes{1, 4, 2, queries, keys, 33, 31};
      const auto operands = operands_of(c, sizes, 7);
      expect_exact(run(session, graph_of(c, types_of(c, sizes, f32)), operands), exact(c, operands));
    }
}

TEST(AttentionClaim, HeadsOfEverySize) {
  const Session session = session_of(1);
  for (std::int64_t features : {1, 2, 15, 16, 64, 80, 128, 257}) {
    SCOPED_TRACE(features);
    const Case c;
    const Sizes sizes{1, 2, 2, 5, 140, features, features};
    const auto operands = operands_of(c, sizes, 3);
    expect_exact(run(session, graph_of(c, types_of(c, sizes, f32)), operands), exact(c, operands));
  }
}

// Few queries go through kernels of their own, and many keys are cut into chunks.
TEST(AttentionClaim, FewQueriesAndManyKeys) {
  const Session session = session_of(2);
  const std::pair<int, int> lengths[] = {{1, 1024}, {1, 2500}, {2, 1025}, {9, 1100}};
  for (const Case& c : plain_cases())
    for (const auto& [queries, keys] : lengths) {
      SCOPED_TRACE(fmt::format("{} queries {} keys {}", c.name(), queries, keys));
      const Sizes sizes{1, 4, 2, queries, keys, 35, 37};
      const auto operands = operands_of(c, sizes, 9);
      expect_exact(run(session, graph_of(c, types_of(c, sizes, f32)), operands), exact(c, operands));
    }
}

/// The operands with the absolute values of v: what a relative error of the weights can do to the result.
std::vector<Array> with_sizes_of_values(std::vector<Array> operands) {
  std::vector<double> sizes = values_of(operands[2]);
  for (double& v : sizes) v = std::abs(v);
  operands[2] = array_of(f64, operands[2].shape(), sizes);
  return operands;
}

// Sums are f32. The result is rounded once, by half a unit of 8 bits, and so is each weight where bf16 numbers are multiplied as they are:
// not of few rows of a head of k, which are widened, unless they are all that there is.
TEST(AttentionClaim, BFloat16IsRoundedOnceOnEachWay) {
  const Session session = session_of(2);
  std::vector<Case> cases = plain_cases();
  cases.push_back({{.softcap = 3}, Extent::all, Extent::none, true});
  std::erase_if(cases, [](const Case& c) { return c.bias != Extent::none; });  // in bf16 it is left to the body
  // The last have more blocks of queries than take values together.
  const std::pair<int, int> lengths[] = {{1, 200}, {1, 1100}, {3, 3}, {3, 1100}, {17, 200}, {70, 3}, {70, 200}, {300, 301}};
  for (const Case& c : cases)
    for (const auto& [queries, keys] : lengths) {
      SCOPED_TRACE(fmt::format("{} queries {} keys {}", c.name(), queries, keys));
      const Sizes sizes{1, 4, 2, queries, keys, 34, 30};
      std::mt19937 random(19);
      std::vector<Array> operands;
      for (const Type& type : types_of(c, sizes, bf16)) {
        const double low = is_float(type.dtype) ? -2 : 0, high = is_float(type.dtype) ? 2 : type.dtype == i32 ? double(keys) : 1;
        operands.push_back(random_array(type, low, high, random));
      }
      const Graph graph = graph_of(c, types_of(c, sizes, bf16));
      const Array seen = run(session, graph, operands), wanted = exact(c, operands), most = exact(c, with_sizes_of_values(operands));
      const bool is_few = queries < keys && queries * sizes.heads / sizes.kv_heads <= cpu::attention_kernel(cpu::cpu_level()).few;
      const double of_weights = cpu::multiplies_bf16(cpu::cpu_level()) && !is_few ? 0x1p-8 : 0, of_result = 0x1p-8;
      for (std::int64_t i = 0; i < wanted.size(); ++i) {
        const double y = wanted.get_double(i), exact_error = of_weights * most.get_double(i);
        ASSERT_NEAR(seen.get_double(i), y, exact_error + of_result * (std::abs(y) + exact_error) + tolerance) << "element " << i;
      }
    }
}

TEST(AttentionClaim, TheSameBitsAtAnyNumberOfThreads) {
  for (const Sizes& sizes : {Sizes{2, 4, 2, 70, 300, 24, 24}, Sizes{1, 4, 2, 1, 5000, 24, 24}})
    for (const Case& c : plain_cases()) {
      SCOPED_TRACE(c.name());
      const auto operands = operands_of(c, sizes, 11);
      const Graph graph = graph_of(c, types_of(c, sizes, f32));
      const Array one = run(session_of(1), graph, operands);
      for (int threads : {2, 3}) EXPECT_EQ(difference(run(session_of(threads), graph, operands), one), 0) << threads;
    }
}

TEST(AttentionClaim, TheSameBitsAloneAndInABatch) {
  const Session session = session_of(2);
  const Sizes many{3, 4, 2, 33, 200, 16, 16}, one{1, 4, 2, 33, 200, 16, 16};
  for (const Case& c : plain_cases()) {
    SCOPED_TRACE(c.name());
    const auto operands = operands_of(c, many, 13);
    const Array together = run(session, graph_of(c, types_of(c, many, f32)), operands);
    for (std::int64_t item = 0; item < 3; ++item) {
      std::vector<Array> alone;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const Type type = types_of(c, one, f32)[i];
        Array part(type.dtype, static_shape(type));
        for (std::int64_t e = 0; e < part.size(); ++e) part.set_double(e, operands[i].get_double(item * part.size() + e));
        alone.push_back(part);
      }
      const Array seen = run(session, graph_of(c, types_of(c, one, f32)), alone);
      for (std::int64_t e = 0; e < seen.size(); ++e)
        ASSERT_EQ(seen.get_double(e), together.get_double(item * seen.size() + e)) << "element " << e;
    }
  }
}

/// The first tokens of a text, along its axis.
Array beginning(const Array& x, std::int64_t axis, std::int64_t tokens) {
  return run_all({x}, [&](const Values& v) { return Values{slice_axis(v[0], axis, 0, tokens)}; })[0];
}

/// So a text means the same beside longer ones. Its last rows are too few to fill a block, or all of them are.
TEST(AttentionClaim, TheSameBitsWithAndWithoutPadding) {
  const Session session = session_of(2);
  const Case c{{}, Extent::keys};
  const std::pair<int, int> lengths[] = {{1, 3}, {3, 17}, {4, 40}, {35, 64}, {65, 66}, {130, 150}};
  for (const DType number : {f32, bf16})
    for (const auto& [tokens, padded] : lengths) {
      SCOPED_TRACE(fmt::format("{} of {} tokens", tokens, padded));
      const Sizes sizes{1, 4, 4, padded, padded, 32, 32}, alone{1, 4, 4, tokens, tokens, 32, 32};
      std::mt19937 random(23);
      std::vector<Array> operands, own;
      for (const Type& type : types_of(c, sizes, number)) operands.push_back(random_array(type, -2, 2, random));
      for (std::int64_t key = 0; key < padded; ++key) operands[3].set_double(key, key < tokens);
      for (const Array& x : operands) own.push_back(beginning(x, is_bool(x.dtype()) ? 3 : 2, tokens));
      const Array seen = run(session, graph_of(c, types_of(c, sizes, number)), operands);
      EXPECT_EQ(run(session, graph_of(c, types_of(c, alone, number)), own), beginning(seen, 2, tokens));
    }
}

TEST(AttentionClaim, OneProgramForEveryLength) {
  Graph graph;
  const Dim batch = Dim::symbol("B", 4), length = Dim::symbol("S", 200);
  const Value q = graph.input("x0", {batch, 2, length, 8}, f32), k = graph.input("x1", {batch, 2, length, 8}, f32),
              v = graph.input("x2", {batch, 2, length, 8}, f32), keep = graph.input("x3", {batch, 1, 1, length}, boolean);
  graph.output("y", attention(q, k, v, {.mask = keep}));
  const Executable program = session_of(2).compile(graph);
  const Case c{{}, Extent::keys};
  for (std::int64_t size : {1, 16, 31, 200}) {
    SCOPED_TRACE(size);
    const auto operands = operands_of(c, {3, 2, 2, size, size, 8, 8}, 17);
    std::map<std::string, Feed> feeds;
    for (const auto& [name, array] : named(operands)) feeds.emplace(name, array);
    expect_exact(program.run(feeds).at("y"), exact(c, operands));
  }
}

TEST(AttentionClaim, RowsWithNothingToSeeGiveZeros) {
  const Session session = session_of(1);
  const Case causal{{.causal = true}}, masked{{}, Extent::keys};
  const Sizes sizes{1, 1, 1, 40, 3, 4, 4};  // 37 queries stand before the first key
  const Array early = run(session, graph_of(causal, types_of(causal, sizes, f32)), operands_of(causal, sizes, 1));
  for (std::int64_t i = 0; i < 37 * 4; ++i) EXPECT_EQ(early.get_double(i), 0) << i;
  EXPECT_NE(early.get_double(37 * 4), 0);
  auto operands = operands_of(masked, sizes, 1);
  operands[3] = array_of(boolean, {1, 1, 1, 3}, {0, 0, 0});
  const Array none = run(session, graph_of(masked, types_of(masked, sizes, f32)), operands);
  for (std::int64_t i = 0; i < none.size(); ++i) EXPECT_EQ(none.get_double(i), 0) << i;
}

// What padding holds in its keys must not matter.
TEST(AttentionClaim, HiddenKeysMayBeNaN) {
  const Case c{{}, Extent::keys};
  const Sizes sizes{1, 1, 1, 3, 3, 4, 4};
  auto operands = operands_of(c, sizes, 1);
  operands[3] = array_of(boolean, {1, 1, 1, 3}, {1, 0, 1});
  const Array plain = run(session_of(1), graph_of(c, types_of(c, sizes, f32)), operands);
  for (std::int64_t d = 0; d < 4; ++d) operands[1].set_double(4 + d, NAN);
  EXPECT_EQ(difference(run(session_of(1), graph_of(c, types_of(c, sizes, f32)), operands), plain), 0);
}

// How graphs become launches.

/// (B, S, heads * size) -> (B, heads, S, size)
Value split(Value x, std::int64_t heads) {
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2).value() / heads}), {0, 2, 1, 3});
}

/// Attention between projections, as transformers have it: x (B, S, 32).
Graph layer() {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 4), Dim::symbol("S", 64), 32}, f32);
  const auto project = [&](const Value& of, const std::string& name) { return matmul(of, graph.input(name, {32, 32}, f32)); };
  const Value context = attention(split(project(x, "q"), 4), split(project(x, "k"), 4), split(project(x, "v"), 4), {.causal = true});
  graph.output("y", project(reshape(transpose(context, {0, 2, 1, 3}), x.shape()), "o"));
  return graph;
}

std::vector<std::string> launches(const Executable& program, const std::map<std::string, Array>& inputs) {
  std::map<std::string, Feed> feeds(inputs.begin(), inputs.end());
  std::vector<std::string> names;
  for (const LaunchReport& report : program.profile(feeds, 0)) names.push_back(report.kind + " " + report.name.substr(0, 9));
  return names;
}

TEST(AttentionClaim, ReadsProjectionsAndWritesForTheNextWithoutCopies) {
  const Graph graph = layer();
  std::mt19937 random(1);
  std::map<std::string, Array> inputs{{"x", random_array({f32, {2, 40, 32}}, -1, 1, random)}};
  for (const char* name : {"q", "k", "v", "o"}) inputs[name] = random_array({f32, {32, 32}}, -1, 1, random);
  const Executable program = session_of(2).compile(graph);
  const auto names = launches(program, inputs);
  EXPECT_EQ(names.size(), 5u) << fmt::format("{}", fmt::join(names, ", "));
  EXPECT_EQ(std::count(names.begin(), names.end(), "claim attention"), 1);
  std::map<std::string, Feed> feeds(inputs.begin(), inputs.end());
  // The reference in f32 is the less exact side: sums of 32 products of numbers up to 5.
  EXPECT_LE(difference(program.run(feeds).at("y"), evaluate(graph, inputs)[0]), 1e-4);
}

TEST(AttentionClaim, ReadsOtherLayoutsInPlace) {
  Graph graph;  // (B, S, heads, size), as torch has it before the transposition; q, k and v in one array
  const Value all = graph.input("x", {2, 50, 3, 4, 16}, f32);
  const auto part = [&](std::int64_t i) { return transpose(reshape(slice_axis(all, 2, i, i + 1), {2, 50, 4, 16}), {0, 2, 1, 3}); };
  graph.output("y", transpose(attention(part(0), part(1), part(2)), {0, 2, 1, 3}));
  std::mt19937 random(2);
  const std::map<std::string, Array> inputs{{"x", random_array({f32, {2, 50, 3, 4, 16}}, -2, 2, random)}};
  const Executable program = session_of(1).compile(graph);
  EXPECT_EQ(launches(program, inputs), std::vector<std::string>{"claim attention"});
  EXPECT_LE(difference(program.run({{"x", inputs.at("x")}}).at("y"), evaluate(graph, inputs)[0]), tolerance);
}

TEST(AttentionClaim, StoresKeysWhoseFeaturesLieApart) {
  Graph graph;
  const Value q = graph.input("q", {1, 2, 9, 8}, f32), k = graph.input("k", {1, 2, 8, 30}, f32), v = graph.input("v", {1, 2, 30, 8}, f32);
  graph.output("y", attention(q, transpose(k, {0, 1, 3, 2}), v) * 2);
  std::mt19937 random(3);
  std::map<std::string, Array> inputs;
  for (const auto& [input, value] : graph.inputs()) inputs[input.name] = random_array(input.type, -2, 2, random);
  std::map<std::string, Feed> feeds(inputs.begin(), inputs.end());
  EXPECT_LE(difference(session_of(1).compile(graph).run(feeds).at("y"), evaluate(graph, inputs)[0]), 2 * tolerance);
}

TEST(AttentionClaim, RunsInsideRegions) {
  Graph graph;
  const Value x = graph.input("x", {5, 2, 12, 8}, f32), k = graph.input("k", {1, 2, 20, 8}, f32), flag = graph.input("flag", {}, boolean);
  const auto see = [&](const Value& q) {
    const Value one = reshape(q, {1, 2, 12, 8});
    return reshape(attention(one, k, k, {.causal = true}), q.shape());
  };
  const Values states = scan(
      [&](const Values& carry, const Values& slice) {
        const Value next = see(carry[0] + slice[0]);
        return std::pair{Values{next}, Values{next}};
      },
      {sum(x, {0})}, {x});
  graph.output("all", states[1]);
  graph.output(
      "chosen",
      cond(flag, {states[0]}, [&](const Values& v) { return Values{see(v[0])}; }, [](const Values& v) { return Values{v[0] * 2}; })[0]);
  std::mt19937 random(4);
  const std::map<std::string, Array> inputs{{"x", random_array({f32, {5, 2, 12, 8}}, -1, 1, random)},
                                            {"k", random_array({f32, {1, 2, 20, 8}}, -1, 1, random)},
                                            {"flag", array_of(boolean, {}, {1})}};
  const Executable program = session_of(2).compile(graph);
  const auto wanted = evaluate(graph, inputs);
  std::map<std::string, Feed> feeds(inputs.begin(), inputs.end());
  const Outputs seen = program.run(feeds);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_LE(difference(seen[i], wanted[i]), 5 * tolerance) << i;  // five steps
  EXPECT_NE(program.dump(Stage::lir).find("attention"), std::string::npos);
}

std::string how(const Session& session, DType dtype) {
  Graph graph;
  const Value q = graph.input("q", {1, 2, 9, 8}, dtype);
  graph.output("y", attention(q, q, q));
  for (const NodeReport& report : session.compile(graph).explain())
    if (report.text.find(" attention(") != std::string::npos) return report.how;
  return "absent";
}

TEST(AttentionClaim, IsReportedAndCanBeRefused) {
  EXPECT_EQ(how(session_of(1), f32), "claimed");
  EXPECT_EQ(how(session_of(1), bf16), "claimed");
  EXPECT_EQ(how(session_of(1), f64), "decomposed");
  SessionOptions without;
  without.cache_folder = "";
  without.claims = false;
  EXPECT_EQ(how(Session(Device::cpu(), without), f32), "decomposed");
}

/// The level is chosen once in a process, so lower ones run in a child.
TEST(AttentionClaim, AtLowerLevels) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (auto level : cpu::allowed_levels(cpu::cpu_features())) {
    if (level == cpu::best_level(cpu::cpu_features())) continue;
    const std::string command = "RLX_CPU=" + std::string(cpu::to_string(level)) + " '" + self +
                                "' --source=backends/attention --gtest_brief=1 --gtest_filter=-AttentionClaim.AtLowerLevels";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

}  // namespace attention_test
}  // namespace rlx::test
