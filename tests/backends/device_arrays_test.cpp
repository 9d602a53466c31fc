// Arrays that lie on a device, and what crosses to the host for them.
#include <gtest/gtest.h>

#include <thread>

#include "backends/dummy_device.h"
#include "message.h"

namespace rlx::test {
namespace device_arrays_test {

Session session(const Device& device = dummy_device(), bool host = true) {
  SessionOptions options;
  options.cache_folder = "";
  options.host = host;
  return Session(device, options);
}

/// y = x * factor
Executable scaled(const Session& session, double factor, DType dtype = f32) {
  Graph graph;
  graph.output("y", graph.input("x", {4}, dtype) * factor);
  return session.compile(graph);
}

Array counted(DType dtype = f32) { return Array::of(dtype, {4}, std::vector<float>{1, 2, 3, 4}); }

/// The bytes that cross in `work`, both ways together.
template <class Work>
std::int64_t crossing(const Work& work) {
  DummyMemory& memory = *dummy_backend().memory();
  const std::int64_t before = memory.uploaded + memory.downloaded;
  work();
  return memory.uploaded + memory.downloaded - before;
}

/// Another device of the kind, with memory of its own.
Device other_device() {
  static const DummyBackend backend;
  return Device(backend);
}

TEST(DeviceArrays, GoFromOneRunToTheNextWithoutCrossing) {
  const Session one = session();
  for (const DType dtype : {f32, bf16, i32}) {
    const Executable twice = scaled(one, 2, dtype), thrice = scaled(session(), 3, dtype);
    Array y;
    EXPECT_EQ(crossing([&] { y = twice.run({{"x", counted(dtype)}}).at("y"); }), std::ssize(counted(dtype).bytes()));
    EXPECT_TRUE(y.device() == dummy_device());
    EXPECT_EQ(crossing([&] {
                for (int i = 0; i < 3; ++i) y = thrice.run({{"x", y}}).at("y");
              }),
              0);
    EXPECT_EQ(crossing([&] { EXPECT_EQ(y.get_double(3), 4 * 2 * 27); }), std::ssize(counted(dtype).bytes()));
    EXPECT_EQ(crossing([&] { EXPECT_EQ(y.get_double(0), 54); }), 0) << "it was read before";
    EXPECT_EQ(crossing([&] { y = twice.run({{"x", y}}).at("y"); }), 0) << "and still lies there";
    EXPECT_EQ(y.get_double(1), 2 * 108);
  }
}

TEST(DeviceArrays, AsynchronousRunsTakeAndGiveThem) {
  const Executable twice = scaled(session(), 2);
  const Array x = counted().to(dummy_device());
  Array y, z;
  EXPECT_EQ(crossing([&] {
              const PendingRun first = twice.run_async({{"x", x}}), second = twice.run_async({{"x", x}});
              y = first.results().at("y");
              z = twice.run_async({{"x", second.results().at("y")}}).results().at("y");
            }),
            0);
  EXPECT_EQ(y.get_double(3), 8);
  EXPECT_EQ(z.get_double(3), 16);
}

TEST(DeviceArrays, AreMovedWhenAsked) {
  const Array x = counted();
  EXPECT_TRUE(x.device() == Device::cpu());
  EXPECT_EQ(x.to(Device::cpu()).bytes().data(), x.bytes().data());
  const Array there = x.to(dummy_device());
  EXPECT_TRUE(there.device() == dummy_device());
  EXPECT_EQ(crossing([&] { EXPECT_EQ(there.to(dummy_device()).shape(), x.shape()); }), 0);
  const Array back = there.to(Device::cpu());
  EXPECT_TRUE(back.device() == Device::cpu());
  EXPECT_EQ(back, x);
  EXPECT_EQ(there, x);
  for (const Array& empty : {Array(f32, {0, 3}), Array(f32, {})}) EXPECT_EQ(empty.to(dummy_device()).to(Device::cpu()), empty);
}

TEST(DeviceArrays, WhoWritesToOneGetsItOnTheHost) {
  Array y = scaled(session(), 2).run({{"x", counted()}}).at("y");
  const Array same = y;
  y.mutable_values<float>()[0] = 7;
  EXPECT_TRUE(y.device() == Device::cpu());
  EXPECT_EQ(y.get_double(0), 7);
  EXPECT_EQ(y.get_double(1), 4);
  EXPECT_EQ(same.get_double(0), 2);
}

TEST(DeviceArrays, ParametersAndStatesAreBoundWhereTheyLie) {
  Graph graph;
  const Value w = graph.param("w", {4}, f32), s = graph.state("s", {4}, f32), x = graph.input("x", {4}, f32);
  graph.output("s", s + x * w);
  Executable program = session().compile(graph), other = session().compile(graph);
  const Array here = counted().to(dummy_device());
  EXPECT_EQ(crossing([&] {
              program.set_param("w", here);
              program.set_state("s", here);
              other.set_param("w", here);
              program.run({{"x", here}});
              other.set_state("s", program.state("s"));
              program.run({{"x", here}});
              other.run({{"x", here}});
              other.run({{"x", here}});
            }),
            0);
  EXPECT_EQ(here, counted()) << "none of them changed what was given";
  for (int i = 0; i < 4; ++i) {
    const double x_i = i + 1;
    EXPECT_EQ(program.state("s").get_double(i), x_i + 2 * x_i * x_i);
    EXPECT_EQ(other.state("s").get_double(i), x_i + 3 * x_i * x_i);
  }
}

/// A result that is a state keeps its values while somebody holds it, whatever runs do to the state.
TEST(DeviceArrays, AResultThatIsAStateStaysAsItIs) {
  Graph graph;
  const Value cache = graph.state("cache", {2, 2}, f32), row = graph.input("row", {1, 2}, f32);
  graph.output("cache", dynamic_update(cache, row, {scalar(row, 0, i32), scalar(row, 0, i32)}));
  const Executable program = session().compile(graph);
  const std::vector<float> ones{1, 1}, twos{2, 2};
  const Array first = program.run({{"row", ones}}).at("cache");
  const Array second = program.run({{"row", twos}}).at("cache");
  EXPECT_EQ(first.get_double(0), 1);
  EXPECT_EQ(second.get_double(0), 2);
}

TEST(DeviceArrays, OfAnotherDeviceAreCopied) {
  const Array there = counted().to(other_device());
  EXPECT_EQ(scaled(session(), 2).run({{"x", there}}).at("y").get_double(3), 8);
  EXPECT_EQ(scaled(session(Device::cpu()), 2).run({{"x", there}}).at("y").get_double(3), 8);
  Graph graph;
  graph.output("y", graph.param("w", {4}, f32) + graph.input("x", {4}, f32));
  Executable on_cpu = session(Device::cpu()).compile(graph);
  on_cpu.set_param("w", there);
  EXPECT_EQ(on_cpu.run({{"x", counted()}}).at("y").get_double(3), 8);
  EXPECT_EQ(there.to(dummy_device()), counted());
}

TEST(DeviceArrays, OfAnotherDeviceAreRefusedWhereThatIsForbidden) {
  const Array there = counted().to(other_device());
  EXPECT_EQ(error_of([&] { scaled(session(dummy_device(), false), 2).run({{"x", there}}); }),
            "input 'x': its bytes are on dummy, the session computes on dummy, and copies nothing by way of the host (Array::to does)");
  EXPECT_NE(error_of([&] { scaled(session(Device::cpu(), false), 2).run({{"x", there}}); }).find("the session computes on cpu"),
            std::string::npos);
  Graph graph;
  graph.output("y", graph.param("w", {4}, f32) + graph.input("x", {4}, f32));
  Executable program = session(dummy_device(), false).compile(graph);
  EXPECT_NE(error_of([&] { program.set_param("w", there); }).find("parameter 'w': its bytes are on dummy"), std::string::npos);
  program.set_param("w", counted());
  EXPECT_EQ(program.run({{"x", counted()}}).at("y").get_double(3), 8) << "arrays of the host are brought there";
}

TEST(DeviceArrays, TheirOwnerKeepsWhatWasRead) {
  Array y = scaled(session(), 2).run({{"x", counted()}}).at("y");
  const Array view(y.dtype(), y.shape(), y.bytes(), y.owner());
  y = Array();
  EXPECT_EQ(view.get_double(3), 8);
  EXPECT_TRUE(view.device() == Device::cpu());
}

TEST(DeviceArrays, AreReadByManyThreads) {
  const Array y = scaled(session(), 2).run({{"x", counted()}}).at("y");
  EXPECT_EQ(crossing([&] {
              std::vector<std::jthread> readers;
              for (int i = 0; i < 4; ++i) readers.emplace_back([&] { EXPECT_EQ(y.get_double(3), 8); });
            }),
            16);
}

}  // namespace device_arrays_test
}  // namespace rlx::test
