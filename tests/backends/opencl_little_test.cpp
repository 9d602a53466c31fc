// A device that can do less than the one it stands for: no f64, little memory, small groups.
#include "backends/opencl_device.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

class LittleDevice : public OpenClTest {
 protected:
  void SetUp() override {
    OpenClTest::SetUp();
    if (IsSkipped()) return;
    backend_ = first_device_with([](opencl::DeviceFacts& facts) {
      facts.has_f64 = false;
      facts.largest_buffer = 1 << 20;
      facts.memory = 8 << 20;
      facts.largest_group = 16;
      facts.divides_exactly = false;
    });
  }
  Session session(SessionOptions options = {}) const {
    options.threads = 1;
    options.cache_folder = "";
    return Session(Device(*backend_), options);
  }

 private:
  std::unique_ptr<Backend> backend_;
};

/// In f64, f32 and both.
Graph graph_of_two_types() {
  Graph graph("two_types");
  const Value x = graph.input("x", {3}, f64), z = graph.input("z", {3}, f32);
  graph.output("wide", exp(x) * 2.0);
  graph.output("narrow", z * z + 1);
  graph.output("cast", cast(x, f32) + z);
  return graph;
}

TEST_F(LittleDevice, LeavesTypesThatItLacksToTheHost) {
  Executable program = session().compile(graph_of_two_types());
  EXPECT_EQ(program.dump(Stage::kernels).find("double"), std::string::npos);
  Array x(f64, {3}), z(f32, {3});
  for (std::int64_t i = 0; i < 3; ++i) x.set_double(i, 0.1 * static_cast<double>(i + 1)), z.set_double(i, static_cast<double>(i));
  const Outputs seen = program.run({{"x", x}, {"z", z}});
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(seen.at("wide").get_double(i), 2 * std::exp(x.get_double(i)), 1e-15);
    EXPECT_EQ(seen.at("narrow").get_double(i), z.get_double(i) * z.get_double(i) + 1);
    EXPECT_EQ(seen.at("cast").get_double(i), static_cast<float>(x.get_double(i)) + static_cast<float>(z.get_double(i)));
  }
  const std::string error = error_of([&] { session({.host = false}).compile(graph_of_two_types()); });
  EXPECT_NE(error.find(", f64[3], on opencl:0"), std::string::npos) << error;
}

/// Eight values of a quarter of a buffer each that live at one time.
TEST_F(LittleDevice, ComputesWithMoreThanItsLargestBuffer) {
  constexpr std::int64_t count = 1 << 16;
  Graph graph("wide");
  const Value x = graph.input("x", {count}, f32);
  Value total = x;
  Values parts;
  for (int i = 0; i < 8; ++i) parts.push_back(cumsum(x * (i + 1), 0));
  for (const Value& part : parts) total = total + cumsum(part, 0, false, true);
  graph.output("y", total);
  Executable program = session().compile(graph);
  EXPECT_GT(program.arena_bytes(), 1 << 20);
  const Array ones = Array::of<float>({count}, std::vector<float>(count, 1));
  EXPECT_EQ(program.run({{"x", ones}}).at("y").get_double(count - 1), 1 + 36.0 * count);
}

TEST_F(LittleDevice, NamesWhatDoesNotFitAndLivesOn) {
  Graph graph("large");
  const Value x = graph.input("x", {Dim::symbol("N", 1 << 22)}, f32);
  graph.output("y", exp(x));
  Executable program = session().compile(graph);
  const std::string error = error_of([&] { program.run({{"x", Array(f32, {1 << 20})}}); });
  for (const char* part : {"opencl:0 (", "no memory for 4.0 MiB", "its largest buffer has 1.0 MiB"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_EQ(program.run({{"x", Array(f32, {1 << 10})}}).at("y").get_double(5), 1);
}

}  // namespace
}  // namespace rlx::test
