// Graphs in a browser: numbers, sizes, states, and what WebGPU's standard asks of bindings.
#include "rlx/ops.h"
#include "web/browser.h"

namespace rlx::test {
namespace {

class ProgramsInBrowser : public BrowserTest {
 protected:
  static Array floats(std::vector<std::int64_t> shape, const std::vector<float>& values) {
    return Array::of<float>(std::move(shape), values);
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
