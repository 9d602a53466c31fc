// Arrays that lie on an OpenCL device: nothing crosses from one run to the next.
#include <atomic>

#include "backends/opencl_device.h"
#include "message.h"
#include "rlx/io.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace opencl_arrays_test {

using OpenClArrays = OpenClTest;

std::atomic<std::int64_t> crossed;  // bytes of reads and writes
decltype(&clEnqueueReadBuffer) real_read;
decltype(&clEnqueueWriteBuffer) real_write;

/// The first device, whose driver counts what crosses.
std::unique_ptr<Backend> counting_device() {
  return with_driver([](opencl::Driver& driver) {
    real_read = driver.EnqueueReadBuffer, real_write = driver.EnqueueWriteBuffer;
    driver.EnqueueReadBuffer = [](cl_command_queue queue, cl_mem memory, cl_bool waits, size_t at, size_t bytes, void* to, cl_uint count,
                                  const cl_event* after, cl_event* event) {
      crossed += static_cast<std::int64_t>(bytes);
      return real_read(queue, memory, waits, at, bytes, to, count, after, event);
    };
    driver.EnqueueWriteBuffer = [](cl_command_queue queue, cl_mem memory, cl_bool waits, size_t at, size_t bytes, const void* from,
                                   cl_uint count, const cl_event* after, cl_event* event) {
      crossed += static_cast<std::int64_t>(bytes);
      return real_write(queue, memory, waits, at, bytes, from, count, after, event);
    };
  });
}

template <class Work>
std::int64_t crossing(const Work& work) {
  const std::int64_t before = crossed;
  work();
  return crossed - before;
}

TEST_F(OpenClArrays, GoFromOneRunToTheNextWithoutCrossing) {
  const auto backend = counting_device();
  const Device device(*backend);
  const Session session(device, {.cache_folder = ""}), other(device, {.cache_folder = ""});
  for (const DType dtype : {f32, bf16, f16, i8, i64}) {
    Graph graph;
    graph.output("y", graph.input("x", {4}, dtype) * 2 + 1);
    const Executable first = session.compile(graph), second = other.compile(graph);
    const Array x = Array::of(dtype, {4}, std::vector<float>{0, 1, 2, 3});
    Array y;
    EXPECT_EQ(crossing([&] { y = first.run({{"x", x}}).at("y"); }), std::ssize(x.bytes()));
    EXPECT_TRUE(y.device() == device);
    EXPECT_EQ(crossing([&] { y = second.run_async({{"x", y}}).results().at("y"); }), 0);
    EXPECT_EQ(crossing([&] { y = first.run({{"x", y}}).at("y"); }), 0);
    EXPECT_EQ(crossing([&] { EXPECT_EQ(y.floats(), (std::vector<float>{7, 15, 23, 31})) << name(dtype); }), std::ssize(x.bytes()));
  }
}

TEST_F(OpenClArrays, GoToOtherDevicesAndBack) {
  const Array x = Array::of(f32, {3}, std::vector<float>{1, 2, 3});
  const Device device = Device::named("opencl");
  const Array there = x.to(device);
  EXPECT_TRUE(there.device() == device);
  Graph graph;
  graph.output("y", graph.input("x", {3}, f32) * 2);
  const auto other = counting_device();
  for (const Device& to : {Device::cpu(), device, Device(*other)}) {
    const Array y = Session(to, {.cache_folder = ""}).compile(graph).run({{"x", there}}).at("y");
    EXPECT_EQ(y.floats(), (std::vector<float>{2, 4, 6})) << to.name();
    EXPECT_EQ(y.to(Device::cpu()), y);
  }
  EXPECT_NE(error_of([&] { Session(Device::cpu(), {.host = false}).compile(graph).run({{"x", there}}); }).find("its bytes are on opencl:0"),
            std::string::npos);
}

TEST_F(OpenClArrays, ParametersAreNotCopiedWhereTheDeviceReadsThoseOfTheHost) {
  const auto backend = counting_device();
  if (!opencl::find_devices().found.front().memory_is_hosts) GTEST_SKIP() << "the device has memory of its own";
  constexpr std::int64_t count = 1 << 16;
  const TemporaryFolder folder;
  save_safetensors(folder / "w.safetensors", {{"w", Array::of<float>({count}, std::vector<float>(count, 2))}});
  Graph graph;
  graph.output("y", graph.param("w", {count}, f32) * graph.input("x", {1}, f32));
  Executable program = Session(Device(*backend), {.cache_folder = ""}).compile(graph);
  program.set_params(load_safetensors(folder / "w.safetensors").arrays);
  Array y;
  EXPECT_EQ(crossing([&] { y = program.run({{"x", std::vector<float>{3}}}).at("y"); }), 4);
  EXPECT_EQ(y.get_double(count - 1), 6);
  program.set_param("w", Array::of<float>({count}, std::vector<float>(count, 5)));
  EXPECT_EQ(program.run({{"x", std::vector<float>{3}}}).at("y").get_double(count - 1), 15);
  EXPECT_EQ(y.get_double(0), 6);
}

}  // namespace opencl_arrays_test
}  // namespace rlx::test
