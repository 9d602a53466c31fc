// Which GPUs there are, by which names, and what is said of those that are missing.
#include "backends/gpu_device.h"
#include "rlx/ops.h"
#ifdef RLX_COMMAND
#include "cli/run_command.h"
#endif

namespace rlx::test {
namespace {

class GpuDevices : public GpuTest {
 protected:
  GpuDevices() : GpuTest("cuda") {}
};

TEST(GpuLibraries, ADriverThatIsMissingIsNamedWithWhatToInstall) {
  const gpu::Devices cuda = gpu::find_devices(gpu::Vendor::cuda, {.driver = {"libNoSuchDriver.so.1"}});
  EXPECT_TRUE(cuda.found.empty());
  EXPECT_TRUE(cuda.missing.starts_with("cuda: libNoSuchDriver.so.1: ")) << cuda.missing;
  EXPECT_TRUE(cuda.missing.ends_with("(install NVIDIA's driver)")) << cuda.missing;
  const gpu::Devices rocm = gpu::find_devices(gpu::Vendor::rocm, {.driver = {"libNoSuchDriver.so.1", "libNorThis.so.1"}});
  EXPECT_TRUE(rocm.missing.starts_with("rocm: libNoSuchDriver.so.1: ")) << rocm.missing;
  EXPECT_NE(rocm.missing.find("install ROCm"), std::string::npos) << rocm.missing;
}

TEST(GpuLibraries, OneThatIsNoneIsSaid) {
  EXPECT_EQ(gpu::find_devices(gpu::Vendor::cuda, {.driver = {"libc.so.6"}}).missing,
            "cuda: libc.so.6 is there, but lacks cuInit (needed: a driver for CUDA 11.2 or newer) (install NVIDIA's driver)");
}

TEST_F(GpuDevices, ACompilerThatIsMissingIsNamedWithWhatToInstall) {
  const std::string missing = gpu::find_devices(gpu::Vendor::cuda, {.compiler = {"libNoSuchCompiler.so.1"}}).missing;
  EXPECT_TRUE(missing.starts_with("cuda: the driver is there, but no compiler: libNoSuchCompiler.so.1: ")) << missing;
  EXPECT_NE(missing.find("nvidia-cuda-nvrtc"), std::string::npos) << missing;
}

TEST_F(GpuDevices, AreNamedByNumberOrKind) {
  EXPECT_EQ(Device::named("cuda:0").name(), "cuda:0");
  EXPECT_EQ(Device::named("cuda").name(), "cuda:0");
  const std::string description = Device::named("cuda").description();
  for (const char* part : {", sm_", " units; CUDA ", ", NVRTC ", " of memory"})
    EXPECT_NE(description.find(part), std::string::npos) << description;
  EXPECT_NE(error_of([] { Device::named("cuda:9"); }).find("allowed: cpu, cuda:0"), std::string::npos);
}

TEST_F(GpuDevices, OfOneKindComputeBesideEachOther) {
  std::vector<Executable> programs;
  for (const Device& device : Device::all()) {
    if (!device.name().starts_with("cuda:")) continue;
    Graph graph;
    graph.output("y", graph.input("x", {3}, f32) * 2);
    programs.push_back(Session(device, {.cache_folder = std::filesystem::path()}).compile(graph));
  }
  if (programs.size() < 2) GTEST_SKIP() << "needs two GPUs";
  const std::vector<float> x{1, 2, 3};
  for (int i = 0; i < 2; ++i)
    for (const Executable& program : programs) EXPECT_EQ(program.run({{"x", x}}).at("y").get_double(2), 6);
}

TEST_F(GpuDevices, LevelsOfTheCpuAreNotTheirs) {
  EXPECT_NE(error_of([&] { backend().target({.cpu_level = "avx2"}); }).find("cpu_level 'avx2' is of the CPU"), std::string::npos);
}

TEST_F(GpuDevices, TheirErrorsHaveNames) {
  const std::shared_ptr<const gpu::Driver> driver = gpu::find_devices(gpu::Vendor::cuda).found.front().driver;
  EXPECT_NE(driver->code_name(2).find("_ERROR_OUT_OF_MEMORY (2): "), std::string::npos) << driver->code_name(2);
  EXPECT_EQ(driver->code_name(-77), "code -77");
}

#ifdef RLX_COMMAND
TEST_F(GpuDevices, AreListed) {
  const CommandResult result = run_rlx("devices");
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.out.find("\ncuda:0  "), std::string::npos) << result.out;
}
#endif

}  // namespace
}  // namespace rlx::test
