// Executables of an OpenCL device in files: what is on the device, what the host computes, and files for other devices and drivers.
#include <gtest/gtest.h>

#include "backends/opencl_device.h"
#include "formats/temporary_folder.h"
#include "rlx/ops.h"
#include "rlx/program_file.h"

namespace rlx::test {
namespace {

const SessionOptions no_cache{.threads = 2, .cache_folder = std::filesystem::path()};

Array numbers(const std::vector<std::int64_t>& shape, double scale = 0.3) {
  Array array(f32, shape);
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, scale * std::sin(static_cast<double>(i) * 0.7));
  return array;
}

class ProgramFilesOnOpenCl : public OpenClTest {
 protected:
  Device device() const { return Device(backend()); }
  /// Written, and read in a session of its own.
  Executable reread(const Executable& executable) const {
    ProgramFile::save(file, std::span(&executable, 1));
    return ProgramFile::load(file, device(), no_cache);
  }
  std::string refusal(const Device& on, const SessionOptions& options = no_cache) const {
    return error_of([&] { ProgramFile::load(file, on, options); });
  }

  TemporaryFolder folder;
  const std::filesystem::path file = folder / "program.rlxp";
};

Graph scaled() {
  Graph graph("scaled");
  graph.output("y", graph.input("x", {Dim::symbol("B", 8), 4}, f32) * graph.param("w", {4}, f32));
  return graph;
}

TEST_F(ProgramFilesOnOpenCl, GiveTheSameBitsForSizesOfRunTime) {
  Graph graph("layer");
  const Value x = graph.input("x", {Dim::symbol("rows", 64), 48}, f32), w = graph.param("w", {48, 32}, f32);
  graph.output("y", gelu(matmul(softmax(x, 1), w)) * graph.constant(numbers({32})));
  graph.output("sum", sum(x, {0}));
  Executable wanted = session().compile(graph), seen = reread(wanted);
  wanted.set_param("w", numbers({48, 32})), seen.set_param("w", numbers({48, 32}));
  for (const std::int64_t rows : {1, 7, 64}) {
    const Outputs one = wanted.run({{"x", numbers({rows, 48})}}), other = seen.run({{"x", numbers({rows, 48})}});
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i] == other[i]) << "output " << i;
  }
  EXPECT_EQ(seen.dump(Stage::lir), wanted.dump(Stage::lir));
  EXPECT_EQ(seen.dump(Stage::kernels), wanted.dump(Stage::kernels));
}

TEST_F(ProgramFilesOnOpenCl, HaveWhatTheHostComputesAndLoops) {
  Graph graph("both");
  const Value c = graph.input("c", {2}, c128), x = graph.input("x", {4}, f32);
  graph.output("powers", pow(c, c));  // no kernel of a device computes it
  graph.output("doubled", while_loop([](const Values& v) { return lt(sum(v[0], {0}), scalar(v[0], 500, f32)); },
                                     [](const Values& v) { return Values{v[0] * 2}; }, {x})[0]);
  Array bases(c128, {2});
  bases.set_double(0, 2), bases.set_double(1, 3);
  const Executable seen = reread(session().compile(graph));
  const std::vector<float> values{1, 2, 3, 4};
  const Outputs results = seen.run({{"c", bases}, {"x", values}});
  EXPECT_NEAR(results.at("powers").get_complex(1).real(), 27, 1e-12);
  EXPECT_EQ(results.at("doubled").get_double(0), 64);
  const auto nodes = seen.explain();
  EXPECT_TRUE(std::ranges::any_of(nodes, [](const NodeReport& node) { return node.how == "host"; }));
}

TEST_F(ProgramFilesOnOpenCl, HaveStatesThatStayOnTheDevice) {
  Graph graph("cache");
  const Value cache = graph.state("cache", {4, 3}, f32), row = graph.input("row", {1, 3}, f32), at = graph.input("at", {}, i32);
  graph.output("cache", dynamic_update(cache, row, {at, scalar(at, 0, i32)}));
  const Executable wanted = session().compile(graph), seen = reread(wanted);
  for (const std::int32_t place : {0, 2, 3}) {
    const std::vector<std::int32_t> places{place};
    for (const Executable* executable : {&wanted, &seen})
      executable->run({{"row", numbers({1, 3})}, {"at", Array::of<std::int32_t>({}, places)}});
    EXPECT_TRUE(seen.state("cache") == wanted.state("cache"));
  }
  ProgramFile::save(file, std::span(&seen, 1), {}, ProgramFile::Weights::inside);
  EXPECT_TRUE(ProgramFile::load(file, device(), no_cache).state("cache") == wanted.state("cache"));
}

TEST_F(ProgramFilesOnOpenCl, AreRefusedByOtherDevicesAndDrivers) {
  const Executable executable = session().compile(scaled());
  ProgramFile::save(file, std::span(&executable, 1));
  EXPECT_NE(refusal(Device::cpu()).find("program.rlxp: it has no program for cpu "), std::string::npos) << refusal(Device::cpu());
  const auto newer = first_device_with([](opencl::DeviceFacts& facts) { facts.version += "-of-tomorrow"; });
  const std::string error = refusal(Device(*newer));
  EXPECT_NE(error.find("it has no program for opencl (opencl; "), std::string::npos) << error;
  EXPECT_LT(error.find("-of-tomorrow"), error.find("it has: opencl (opencl; ")) << error;
  SessionOptions level = no_cache;
  level.cpu_level = "portable";
  EXPECT_NE(refusal(device(), level).find("cpu_level 'portable' is of the CPU"), std::string::npos);
}

TEST_F(ProgramFilesOnOpenCl, HoldProgramsOfSeveralDevices) {
  std::vector<Executable> executables{session().compile(scaled()), Session(Device::cpu(), no_cache).compile(scaled())};
  ProgramFile::save(file, executables);
  const std::vector<float> x{1, 2, 3, 4}, w{1, 0, 2, 0.5};
  for (const Device& on : {device(), Device::cpu(), Device::automatic()}) {
    Executable seen = ProgramFile::load(file, on, no_cache);
    seen.set_param("w", w);
    EXPECT_EQ(seen.run({{"x", x}}).at("y").get_double(2), 6) << on.name();
  }
}

TEST_F(ProgramFilesOnOpenCl, LeaveNothingToTheHostWhereThatIsForbidden) {
  Graph graph("powers");
  const Value c = graph.input("c", {2}, c128);
  graph.output("powers", pow(c, c));
  const Executable executable = session().compile(graph);
  ProgramFile::save(file, std::span(&executable, 1));
  SessionOptions alone = no_cache;
  alone.host = false;
  EXPECT_NE(refusal(device(), alone).find("the session leaves nothing to the host"), std::string::npos) << refusal(device(), alone);
}

}  // namespace
}  // namespace rlx::test
