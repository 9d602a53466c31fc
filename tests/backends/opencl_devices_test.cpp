// Which devices there are, by which names, and what is said of those that are missing.
#include "backends/gpu/backend.h"
#include "backends/mlx/backend.h"
#include "backends/opencl_device.h"
#include "backends/webgpu/backend.h"
#include "rlx/session.h"
#ifdef RLX_COMMAND
#include "cli/run_command.h"
#endif

namespace rlx::test {
namespace {

using OpenClDevices = OpenClTest;

TEST(Devices, TheCpuIsFirstAndTheUsualOne) {
  ASSERT_EQ(::unsetenv("RLX_DEVICE"), 0);
  EXPECT_EQ(Device::all().front().name(), "cpu");
  EXPECT_EQ(Device::usual().name(), "cpu");
  EXPECT_EQ(Device::named("cpu").description(), Device::cpu().description());
}

TEST(Devices, ALoaderThatIsMissingIsNamedWithWhatToInstall) {
  const opencl::Devices devices = opencl::find_devices("libNoSuchLoader.so.1");
  EXPECT_TRUE(devices.found.empty());
  EXPECT_NE(devices.missing.find("libNoSuchLoader.so.1"), std::string::npos) << devices.missing;
  EXPECT_NE(devices.missing.find("apt-get install ocl-icd-libopencl1"), std::string::npos) << devices.missing;
}

TEST(Devices, ALoaderThatIsNoneIsSaid) {
  const opencl::Devices devices = opencl::find_devices("libc.so.6");
  EXPECT_TRUE(devices.found.empty());
  EXPECT_EQ(devices.missing, "libc.so.6 is there, but lacks clGetPlatformIDs of OpenCL 1.2");
}

TEST_F(OpenClDevices, AreNamedByNumberOrKind) {
  EXPECT_EQ(Device::named("opencl:0").name(), "opencl:0");
  EXPECT_EQ(Device::named("opencl").name(), "opencl:0");
  const std::size_t others = gpu::backends().size() + webgpu::backends().size() + mlx::backends().size();
  EXPECT_EQ(Device::all().size(), opencl::backends().size() + others + 1);
  EXPECT_NE(Device::named("opencl").description().find(", driver "), std::string::npos) << Device::named("opencl").description();
  for (const char* name : {"opencl:9", "opncl:0", "gpu", "", "opencl:"}) {
    const std::string error = error_of([&] { Device::named(name); });
    EXPECT_TRUE(error.starts_with("no device '" + std::string(name) + "' (")) << error;
    EXPECT_NE(error.find("allowed: cpu, "), std::string::npos) << error;
    EXPECT_NE(error.find(", opencl:0"), std::string::npos) << error;
  }
  EXPECT_NE(error_of([] { Device::named("opncl:0"); }).find("near: 'opencl:0'"), std::string::npos);
}

TEST_F(OpenClDevices, TheVariableChooses) {
  ::setenv("RLX_DEVICE", "opencl", 1);
  EXPECT_EQ(Device::usual().name(), "opencl:0");
  ::setenv("RLX_DEVICE", "rubbish\n", 1);
  EXPECT_TRUE(error_of([] { Device::usual(); }).starts_with("RLX_DEVICE: no device 'rubbish\\x0a' (allowed: cpu, "));
  ::unsetenv("RLX_DEVICE");
}

TEST_F(OpenClDevices, LevelsOfTheCpuAreNotTheirs) {
  EXPECT_NE(error_of([&] { backend().target({.cpu_level = "avx2"}); }).find("cpu_level 'avx2' is of the CPU"), std::string::npos);
  EXPECT_EQ(backend().target({}).name, "opencl");
}

#ifdef RLX_COMMAND
TEST_F(OpenClDevices, AreListed) {
  const CommandResult result = run_rlx("devices");
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(result.out.starts_with("cpu  ")) << result.out;
  EXPECT_NE(result.out.find("\nopencl:0  "), std::string::npos) << result.out;
}

TEST_F(OpenClDevices, ALoaderWithoutDriversIsListed) {
  ::setenv("OCL_ICD_VENDORS", "/nowhere", 1);
  const CommandResult result = run_rlx("devices");
  ::unsetenv("OCL_ICD_VENDORS");
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(
      result.out.find("\nopencl: the loader finds no driver: CL_PLATFORM_NOT_FOUND_KHR (-1001) (Debian: apt-get install pocl-opencl-icd"),
      std::string::npos)
      << result.out;
}
#endif

}  // namespace
}  // namespace rlx::test
