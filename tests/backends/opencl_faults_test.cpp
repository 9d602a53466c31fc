// What goes wrong with OpenCL devices is said by name, and sessions live on.
#include <fstream>

#include "backends/opencl_device.h"
#include "message.h"
#include "rlx/ops.h"
#ifdef RLX_COMMAND
#include "cli/run_command.h"
#endif

namespace rlx::test {
namespace {

using OpenClFaults = OpenClTest;

Graph doubled() {
  Graph graph("doubled");
  graph.output("y", graph.input("x", {3}, f32) * 2);
  return graph;
}
const std::vector<float> one_two_three{1, 2, 3};

void expect_doubles(const Executable& program) {
  EXPECT_EQ(program.run({{"x", one_two_three}}).at("y").floats(), (std::vector<float>{2, 4, 6}));
}

TEST(BrokenLoaders, AreNamedWithWhatIsWrong) {
  const TemporaryFolder folder;
  const auto missing_with = [&](std::string_view content) {
    const std::string file = (folder / "libOpenCL.so.1").string();
    write_text(file, std::string(content));
    const opencl::Devices devices = opencl::find_devices(file.c_str());
    EXPECT_TRUE(devices.found.empty());
    EXPECT_TRUE(devices.missing.starts_with(file)) << devices.missing;
    return devices.missing;
  };
  EXPECT_NE(missing_with("").find("file too short"), std::string::npos);
  EXPECT_NE(missing_with("this is no library, whatever its name says, and long enough for a header of one").find("invalid ELF header"),
            std::string::npos);
  std::string cut(64, '\0');  // the head of a library, and nothing of what it promises
  cut.replace(0, 7,
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  EXPECT_NE(missing_with(cut).find("apt-get install ocl-icd-libopencl1"), std::string::npos);
}

bool is_lost;
decltype(&clEnqueueNDRangeKernel) real_launch;

TEST_F(OpenClFaults, ALostDeviceFailsTheRunAndNoOther) {
  const auto backend = with_driver([](opencl::Driver& driver) {
    real_launch = driver.EnqueueNDRangeKernel;
    driver.EnqueueNDRangeKernel = [](cl_command_queue queue, cl_kernel kernel, cl_uint axes, const size_t* from, const size_t* items,
                                     const size_t* group, cl_uint count, const cl_event* after, cl_event* event) -> cl_int {
      return is_lost ? CL_DEVICE_NOT_AVAILABLE : real_launch(queue, kernel, axes, from, items, group, count, after, event);
    };
  });
  const Executable there = Session(Device(*backend), {.cache_folder = ""}).compile(doubled());
  const Executable other = Session(Device::named("opencl"), {.cache_folder = ""}).compile(doubled());
  const Array before = there.run({{"x", one_two_three}}).at("y");
  is_lost = true;
  const std::string error = error_of([&] { there.run({{"x", one_two_three}}); });
  EXPECT_TRUE(error.starts_with("opencl:0 (")) << error;
  for (const char* part : {"launching kernel ", "CL_DEVICE_NOT_AVAILABLE (-2)"}) EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_EQ(error_of([&] { there.run_async({{"x", one_two_three}}).wait(); }), error);
  expect_doubles(other);
  is_lost = false;
  expect_doubles(there);
  EXPECT_EQ(before.floats(), (std::vector<float>{2, 4, 6}));
}

bool refuses;
decltype(&clBuildProgram) real_build;

TEST_F(OpenClFaults, AKernelThatTheDriverRefusesIsNamedAndTheSessionLivesOn) {
  const auto backend = with_driver([](opencl::Driver& driver) {
    real_build = driver.BuildProgram;
    driver.BuildProgram = [](cl_program program, cl_uint count, const cl_device_id* devices, const char* options, auto notify,
                             void* to) -> cl_int {
      return refuses ? CL_BUILD_PROGRAM_FAILURE : real_build(program, count, devices, options, notify, to);
    };
  });
  const Session session(Device(*backend), {.cache_folder = ""});
  refuses = true;
  const std::string error = error_of([&] { session.compile(doubled()); });
  for (const char* part : {"opencl:0 (", "refuses kernel ", "CL_BUILD_PROGRAM_FAILURE (-11)", "rlx dump --stage kernels --device opencl:0"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  refuses = false;
  expect_doubles(session.compile(doubled()));
}

bool is_full;
decltype(&clCreateBuffer) real_create;

TEST_F(OpenClFaults, WhatFindsNoMemoryIsSaidWithItsSizeAndTheSessionLivesOn) {
  const auto backend = with_driver([](opencl::Driver& driver) {
    real_create = driver.CreateBuffer;
    driver.CreateBuffer = [](cl_context context, cl_mem_flags flags, size_t bytes, void* host, cl_int* code) -> cl_mem {
      if (!is_full) return real_create(context, flags, bytes, host, code);
      return *code = CL_MEM_OBJECT_ALLOCATION_FAILURE, nullptr;
    };
  });
  const Session session(Device(*backend), {.cache_folder = ""});
  const Executable program = session.compile(doubled());
  is_full = true;
  for (const std::string& error :
       {error_of([&] { program.run({{"x", one_two_three}}); }), error_of([&] { Array(f32, {64}).to(Device(*backend)); })}) {
    EXPECT_TRUE(error.starts_with("opencl:0 (")) << error;
    for (const char* part : {"no memory for 256 bytes: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)", "its largest buffer has ", " are taken)"})
      EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  is_full = false;
  expect_doubles(program);
}

TEST_F(OpenClFaults, RubbishInTheVariableIsAnError) {
  for (const char* name : {"", " ", "cpu:1", "opencl:-1", "opencl:0 ", "OPENCL", "auto:0"}) {
    ::setenv("RLX_DEVICE", name, 1);
    const std::string error = error_of([] { const Session session; });
    EXPECT_TRUE(error.starts_with(fmt::format("RLX_DEVICE: no device '{}' (", name))) << error;
    EXPECT_NE(error.find("allowed: cpu, opencl:0"), std::string::npos) << error;
  }
  ::unsetenv("RLX_DEVICE");
}

#ifdef RLX_COMMAND
TEST_F(OpenClFaults, ACommandSaysItInOneLine) {
  const TemporaryFolder folder;
  write_text(folder / "g.rlx", "graph g {\n  %x: f32[3] = input {label=\"x\"}\n  %y = neg(%x)\n  output y = %y\n}\n");
  const std::string explain = "explain " + (folder / "g.rlx").string() + " --no-time";
  ::setenv("RLX_DEVICE", "rubbish", 1);
  const CommandResult rubbish = run_rlx(explain);
  ::unsetenv("RLX_DEVICE");
  for (const CommandResult& result : {rubbish, run_rlx(explain + " --device opncl:0")}) {
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(line_count(result.err), 1) << result.err;
    EXPECT_NE(result.err.find("no device '"), std::string::npos) << result.err;
  }
  // A driver that is listed, but cannot be opened.
  write_text(folder / "broken.icd", (folder / "libbroken.so").string() + "\n");
  write_text(folder / "libbroken.so", "no library");
  ::setenv("OCL_ICD_VENDORS", folder.path().c_str(), 1);
  const CommandResult broken = run_rlx(explain + " --device opencl"), on_cpu = run_rlx(explain);
  ::unsetenv("OCL_ICD_VENDORS");
  EXPECT_EQ(broken.status, 1);
  EXPECT_NE(broken.err.find("the loader finds no driver"), std::string::npos) << broken.err;
  EXPECT_EQ(on_cpu.status, 0) << on_cpu.err;
}
#endif

}  // namespace
}  // namespace rlx::test
