// Graphs in a browser: numbers, sizes, states, and what WebGPU's standard asks of bindings.
#include <cmath>

#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"
#include "web/browser.h"

namespace rlx::test {
namespace {

class ProgramsInBrowser : public BrowserTest {
 protected:
  static Array floats(std::vector<std::int64_t> shape, const std::vector<float>& values) {
    return Array::of<float>(std::move(shape), values);
  }

  /// That a browser gives what the CPU gives, to a distance of each element.
  void expect_as_here(const SavedGraph& saved, const std::vector<Arrays>& feeds, double most = 0) {
    const std::size_t number = add(saved, feeds);
    run_all();
    const auto runs = results(number);
    ASSERT_EQ(runs.size(), feeds.size());
    Executable here = Session().compile(saved.graph);
    for (const auto& [name, value] : saved.weights) here.set_param(name, value);
    for (std::size_t i = 0; i < feeds.size(); ++i)
      for (const auto& [name, wanted] : here.run({feeds[i].begin(), feeds[i].end()})) {
        const Array& seen = runs[i].at(name);
        ASSERT_EQ(seen.shape(), wanted.shape()) << name;
        for (std::int64_t k = 0; k < wanted.size(); ++k)
          EXPECT_NEAR(seen.get_double(k), wanted.get_double(k), most) << name << ' ' << k << " of run " << i;
      }
  }
};

TEST_F(ProgramsInBrowser, SizesMayChange) {
  Graph graph("sums");
  const Dim n = Dim::symbol("N", 8);
  const Value x = graph.input("x", {n, 2}, f32), w = graph.param("w", {2}, f32);
  graph.output("y", x * w + 1.0f);
  graph.output("sum", sum(x, {0}));
  const std::size_t number =
      add({graph, {{"w", floats({2}, {2, 3})}}}, {{{"x", floats({1, 2}, {1, 2})}}, {{"x", floats({2, 2}, {3, 4, 5, 6})}}});
  run_all();
  const auto runs = results(number);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].at("y"), floats({1, 2}, {3, 7}));
  EXPECT_EQ(runs[1].at("y"), floats({2, 2}, {7, 13, 11, 19}));
  EXPECT_EQ(runs[1].at("sum"), floats({2}, {8, 10}));
}

/// SwiftShader, the only software driver that Chromium gives pages, ends no loop early, as lavapipe does behind 65,535 rounds.
TEST_F(ProgramsInBrowser, LoopsHaveAnyNumberOfRounds) {
  Graph graph("long");
  const Value x = graph.input("x", {Dim::symbol("N", 300'000)}, i32), y = graph.input("y", {2, 200'001}, f32);
  graph.output("sum", sum(x, {0}));
  graph.output("most", reduce_max(y, {1}));
  std::vector<std::int32_t> steps(200'000);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<std::int32_t>(i % 7);
  std::vector<float> rising(400'002);
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<float>(i);
  expect_as_here({graph, {}}, {{{"x", Array::of<std::int32_t>({200'000}, steps)}, {"y", floats({2, 200'001}, rising)}}});
}

/// Its blocks are counted by symbols that no input has.
TEST_F(ProgramsInBrowser, LongAttentionHasAGradient) {
  const Dim n = Dim::symbol("n", 1100);
  Graph graph("gradient");
  Values x;
  for (const char* name : {"q", "k", "v"}) x.push_back(graph.input(name, {1, 2, n, 4}, f32));
  x.push_back(graph.input("bias", {2, 1, n}, f32));
  const Values gradients = grad(sum_all(square(attention(x[0], x[1], x[2], {.causal = true, .bias = x[3]}))), x);
  for (std::size_t i = 0; i < x.size(); ++i) graph.output("d" + std::to_string(i), gradients[i]);
  std::vector<Arrays> feeds;
  for (const std::int64_t length : {5, 300}) {
    const auto waves = [&](std::vector<std::int64_t> shape, float step) {
      std::vector<float> all(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * (shape.size() > 3 ? shape[3] : 1)));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::sin(step * static_cast<float>(i));
      return floats(shape, all);
    };
    feeds.push_back({{"q", waves({1, 2, length, 4}, 0.3F)},
                     {"k", waves({1, 2, length, 4}, 0.7F)},
                     {"v", waves({1, 2, length, 4}, 1.1F)},
                     {"bias", waves({2, 1, length}, 1.3F)}});
  }
  expect_as_here({graph, {}}, feeds, 2e-5);  // sums of 300 roundings of f32
}

TEST_F(ProgramsInBrowser, StatesStay) {
  Graph graph("states");
  const Value a = graph.state("a", {2}, f32), b = graph.state("b", {2}, f32), cache = graph.state("cache", {3, 2}, f32);
  const Value x = graph.input("x", {1, 2}, f32), at = graph.input("at", {}, i32);
  graph.output("a", b);
  graph.output("b", a);
  graph.output("cache", dynamic_update(cache, x, {at, scalar(at, 0, i32)}));
  const auto feed = [](std::int32_t at, float x) {
    return Arrays{{"x", floats({1, 2}, {x, x + 1})}, {"at", Array::of<std::int32_t>({}, std::vector{at})}};
  };
  const std::size_t number = add({graph, {{"a", floats({2}, {1, 2})}, {"b", floats({2}, {3, 4})}}}, {feed(0, 5), feed(2, 7)});
  run_all();
  const auto runs = results(number);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].at("a"), floats({2}, {3, 4}));
  EXPECT_EQ(runs[1].at("a"), floats({2}, {1, 2}));
  EXPECT_EQ(runs[1].at("b"), floats({2}, {3, 4}));
  EXPECT_EQ(runs[1].at("cache"), floats({3, 2}, {5, 6, 0, 0, 7, 8}));
}

TEST_F(ProgramsInBrowser, OneMemoryReadTwiceAndManyBuffers) {
  Graph graph("buffers");
  Value all = graph.input("x0", {3}, f32);
  Arrays feed{{"x0", floats({3}, {1, 2, 3})}};
  for (int i = 1; i < 12; ++i) {
    const std::string name = fmt::format("x{}", i);
    all = all + graph.input(name, {3}, f32);
    feed.emplace(name, floats({3}, {1, 1, 1}));
  }
  const Value flat = reshape(graph.input("m", {2, 3}, f32), {6});
  feed.emplace("m", floats({2, 3}, {1, 2, 3, 4, 5, 6}));
  graph.output("all", all);
  graph.output("pairs", flat + reverse(flat, {0}));
  const std::size_t number = add({graph, {}}, {feed});
  run_all();
  const auto runs = results(number);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].at("all"), floats({3}, {12, 13, 14}));
  EXPECT_EQ(runs[0].at("pairs"), floats({6}, {7, 7, 7, 7, 7, 7}));
}

/// Slices of three bytes and of three halves do not lie on words; the carry swaps its parts, and one is a result before it changes.
TEST_F(ProgramsInBrowser, ScansReadAndWriteSlices) {
  Graph graph("scan");
  const Dim n = Dim::symbol("N", 6);
  const Value a = graph.input("a", {3}, f32), b = graph.input("b", {3}, f32);
  const Value bytes = graph.input("bytes", {n, 3}, u8), halves = graph.input("halves", {n, 3}, bf16);
  const Value factor = graph.param("factor", {}, f32);
  for (const bool reverse : {false, true}) {
    const Values y = scan(
        [&](const Values& carry, const Values& x) {
          return std::pair{Values{carry[1], carry[0] * factor + cast(x[0], f32)},
                           Values{x[0] + x[0], carry[0], cast(x[1], f32) + 1.0f, x[1]}};
        },
        {a, b}, {bytes, halves}, {}, reverse);
    for (std::size_t i = 0; i < y.size(); ++i) graph.output(fmt::format("{}{}", reverse ? "back" : "y", i), y[i]);
  }
  const auto feed = [&](std::int64_t length) {
    Array of_bytes(u8, {length, 3}), of_halves(bf16, {length, 3});
    for (std::int64_t i = 0; i < length * 3; ++i) of_bytes.set_int(i, 7 * i % 100), of_halves.set_double(i, 0.5 * static_cast<double>(i));
    return Arrays{{"a", floats({3}, {1, 2, 3})}, {"b", floats({3}, {4, 5, 6})}, {"bytes", of_bytes}, {"halves", of_halves}};
  };
  expect_as_here({graph, {{"factor", floats({}, {2})}}}, {feed(5), feed(1), feed(6)});
}

TEST_F(ProgramsInBrowser, TheHostReadsPredicatesAlone) {
  Graph graph("choices");
  const Value x = graph.input("x", {4}, f32), count = graph.input("count", {}, i32), w = graph.param("w", {4}, f32);
  const Values looped = while_loop([&](const Values& v) { return lt(v[0], count); },
                                   [&](const Values& v) { return Values{v[0] + 1, v[2] * w, v[1] + 1.0f}; }, {scalar(count, 0, i32), x, x});
  graph.output("steps", looped[0]);
  graph.output("first", looped[1]);
  graph.output("second", looped[2]);
  const Value chosen =
      switch_case(count, {x, x},
                  {[&](const Values& v) { return Values{v[0] + v[1]}; }, [&](const Values& v) { return Values{v[0] * w}; },
                   [](const Values& v) {
                     return scan([](const Values& c, const Values& each) { return std::pair{Values{c[0] + sum(each[0], {0})}, Values{}}; },
                                 {v[0]}, {reshape(v[1], {2, 2})});
                   }})[0];
  graph.output("chosen", chosen);
  const auto feed = [&](std::int32_t count) {
    return Arrays{{"x", floats({4}, {1, 2, 3, 4})}, {"count", Array::of<std::int32_t>({}, std::vector{count})}};
  };
  expect_as_here({graph, {{"w", floats({4}, {2, 3, -1, 0.5f})}}}, {feed(0), feed(1), feed(2), feed(5)});
}

TEST_F(ProgramsInBrowser, RecurrentLayers) {
  Graph graph("recurrent");
  const Dim n = Dim::symbol("N", 5);
  const Value x = graph.input("x", {2, n, 3}, f32);
  Arrays weights;
  const auto param = [&](const std::string& name, std::vector<std::int64_t> shape) {
    Array array(f32, shape);
    for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, 0.1 * static_cast<double>((i * 7 + std::ssize(name)) % 11) - 0.5);
    weights.emplace(name, array);
    return graph.param(name, Dims(shape.begin(), shape.end()), f32);
  };
  const Values l = lstm(x, {param("w0", {8, 3}), param("u0", {8, 2}), param("w0r", {8, 3}), param("u0r", {8, 2})}, true);
  const Values g = gru(l[0], {param("w1", {6, 4}), param("u1", {6, 2}), param("b1", {6}), param("c1", {6})});
  graph.output("y", g[0]);
  graph.output("h", g[1]);
  graph.output("c", l[2]);
  const auto feed = [&](std::int64_t length) {
    Array values(f32, {2, length, 3});
    for (std::int64_t i = 0; i < values.size(); ++i) values.set_double(i, 0.3 * static_cast<double>(i % 7) - 1);
    return Arrays{{"x", values}};
  };
  expect_as_here({graph, weights}, {feed(5), feed(2)}, 1e-5);
}

TEST_F(ProgramsInBrowser, WithoutWebGpuThereIsASentence) {
  Graph graph("none");
  graph.output("y", -graph.input("x", {2}, f32));
  export_web(folder_ / "page", {graph, {}});
  write_text(folder_ / "open.html", R"(<!doctype html><body><script type="module">
Object.defineProperty(Navigator.prototype, "gpu", { value: undefined });
const { showPage } = await import("/page/rlx.js");
await showPage(document.body, "/page/");
await fetch("/seen.txt", { method: "PUT", body: document.querySelector("p").textContent });
await fetch("/done", { method: "PUT", body: "" });
</script>)");
  open_page(folder_.path(), "open.html");
  EXPECT_TRUE(read_text(folder_ / "seen.txt").starts_with("This browser has no WebGPU.")) << read_text(folder_ / "seen.txt");
}

}  // namespace
}  // namespace rlx::test
