// rlx compile, and rlx eval of what it wrote: each a process of its own.
#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "fixture.h"
#include "formats/json/json.h"
#include "rlx/io.h"
#include "rlx/text.h"

namespace rlx {
namespace {

using test::CommandResult;
using test::fixture;
using test::quoted;
using test::read_text;
using test::run_rlx;

/// x w = [[4, 5], [10, 11]], whose squares sum to 262.
class CompileCommand : public testing::Test {
 protected:
  CompileCommand() {
    save_npy(folder / "x.npy", Array::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}));
    save_npy(folder / "w.npy", Array::of<float>({3, 2}, std::vector<float>{1, 0, 0, 1, 1, 1}));
  }
  std::string at(std::string_view name) const { return quoted(folder / name); }
  void expect_loss(const std::string& arguments) const {
    const CommandResult ended = run_rlx("eval " + at("mlp.rlxp") + " --in x=" + at("x.npy") + " --out " + at("out") + arguments);
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(load_npy(folder / "out" / "loss.npy").get_double(0), 262);
  }
  void expect_error(const std::string& arguments, const std::string& part) const {
    const CommandResult ended = run_rlx(arguments);
    EXPECT_EQ(ended.status, 1) << arguments << "\n" << ended.err;
    EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
  }

  test::TemporaryFolder folder;
  const std::string mlp = quoted(fixture("graphs/mlp.rlx"));
};

TEST_F(CompileCommand, WritesWhatEvalRuns) {
  const CommandResult ended = run_rlx("compile " + mlp + " -o " + at("mlp.rlxp"));
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find("no value"), std::string::npos) << ended.out;
  expect_loss(" --param w=" + at("w.npy"));
  expect_error("eval " + at("mlp.rlxp") + " --in x=" + at("x.npy") + " --out " + at("out"), "w");
}

TEST_F(CompileCommand, WritesWhatInspectLists) {
  const CommandResult compiled = run_rlx("compile " + mlp + " --param w=" + at("w.npy") + " -o " + at("mlp.rlxp"));
  const CommandResult people = run_rlx("inspect " + at("mlp.rlxp")), machines = run_rlx("inspect --json " + at("mlp.rlxp"));
  ASSERT_EQ(people.status, 0) << people.err;
  for (const char* line : {"f32[B,3]", "param ", "output ", ": a valid program"})
    EXPECT_NE(people.out.find(line), std::string::npos) << people.out;
  const json::Value seen = json::parse(machines.out, "inspect");
  EXPECT_EQ(seen.at("format"), "program");
  EXPECT_EQ(seen.at("values").size(), 3u);
  EXPECT_NE(compiled.out.find(seen.at("metadata").at("hash").get<std::string>()), std::string::npos) << compiled.out;
  test::write_text(folder / "cut.rlxp", read_text(folder / "mlp.rlxp").substr(0, 100));
  expect_error("inspect " + at("cut.rlxp"), "cut.rlxp: ");
}

TEST_F(CompileCommand, SaysWhereWeightsAre) {
  ASSERT_EQ(run_rlx("compile " + mlp + " --param w=" + at("w.npy") + " -o " + at("mlp.rlxp")).status, 0);
  expect_loss("");
  save_npy(folder / "moved.npy", load_npy(folder / "w.npy"));
  save_npy(folder / "w.npy", Array(f32, {3, 2}));
  expect_error("eval " + at("mlp.rlxp") + " --in x=" + at("x.npy") + " --out " + at("out"), "w.npy: it has ");
  std::filesystem::remove(folder / "w.npy");
  expect_error("eval " + at("mlp.rlxp") + " --in x=" + at("x.npy") + " --out " + at("out"), "w.npy");
  ASSERT_EQ(run_rlx("compile " + mlp + " --weights-inside --param w=" + at("moved.npy") + " -o " + at("mlp.rlxp")).status, 0);
  std::filesystem::remove(folder / "moved.npy");
  expect_loss("");
}

TEST_F(CompileCommand, TakesGraphFilesWithTheirWeights) {
  const Graph graph = parse_graph(read_text(fixture("graphs/mlp.rlx")), "mlp.rlx");
  save_graph(folder / "mlp.safetensors", {graph, {{"w", load_npy(folder / "w.npy")}}});
  ASSERT_EQ(run_rlx("compile " + at("mlp.safetensors") + " -o " + at("mlp.rlxp")).status, 0);
  expect_loss("");
}

TEST_F(CompileCommand, WritesAProgramForEachLevel) {
  ASSERT_EQ(run_rlx("compile " + mlp + " --levels portable,portable -o " + at("two.rlxp")).status, 1);
  ASSERT_EQ(run_rlx("compile " + mlp + " --levels portable --weights-inside --param w=" + at("w.npy") + " -o " + at("mlp.rlxp")).status, 0);
  expect_loss("");
}

TEST_F(CompileCommand, PrintsTheHashOfTheFile) {
  const auto printed = [&](const std::string& arguments) {
    const CommandResult ended = run_rlx("compile " + mlp + " -o " + at("mlp.rlxp") + arguments);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return ended.out.substr(ended.out.find("mlp.rlxp: hash "));
  };
  const std::string hash = printed("");
  EXPECT_EQ(hash.size(), std::string("mlp.rlxp: hash ").size() + 33) << hash;
  EXPECT_EQ(printed(""), hash);
  EXPECT_NE(printed(" --no-fusion"), hash);
}

TEST_F(CompileCommand, WritesWhatReportsTake) {
  ASSERT_EQ(run_rlx("compile " + mlp + " --weights-inside --param w=" + at("w.npy") + " -o " + at("mlp.rlxp")).status, 0);
  for (const std::string stage : {"mir", "lir", "kernels"})
    EXPECT_EQ(run_rlx("dump " + at("mlp.rlxp") + " --stage " + stage).out, run_rlx("dump " + mlp + " --stage " + stage).out) << stage;
  const CommandResult explained = run_rlx("explain " + at("mlp.rlxp") + " --size B=4 --json --no-time");
  ASSERT_EQ(explained.status, 0) << explained.err;
  const CommandResult of_graph = run_rlx("explain " + mlp + " --size B=4 --json --no-time");
  const json::Value report = json::parse(explained.out, "explain"), wanted = json::parse(of_graph.out, "explain");
  EXPECT_EQ(report.at("launches"), wanted.at("launches"));
  EXPECT_EQ(report.at("memory"), wanted.at("memory"));
  const CommandResult profiled = run_rlx("profile " + at("mlp.rlxp") + " --in x=" + at("x.npy") + " --repeats 1");
  EXPECT_EQ(profiled.status, 0) << profiled.err;
  EXPECT_NE(profiled.out.find("The fastest run"), std::string::npos) << profiled.out;
  for (const std::string command : {"dump --stage lir ", "explain ", "profile "})
    expect_error(command + at("mlp.rlxp") + " --no-fusion", "'rlx compile'");
  expect_error("grad --wrt w " + at("mlp.rlxp"), "mlp.rlxp: it is a program of 'rlx compile' (allowed: graphs)");
}

TEST_F(CompileCommand, NamesWhatIsWrong) {
  ASSERT_EQ(run_rlx("compile " + mlp + " -o " + at("mlp.rlxp")).status, 0);
  const std::string rest = " --in x=" + at("x.npy") + " --param w=" + at("w.npy") + " --out " + at("out");
  expect_error("eval " + at("mlp.rlxp") + rest + " --no-fusion", "'rlx compile'");
  expect_error("eval " + at("mlp.rlxp") + rest + " --reference", "--reference is for graphs");
  expect_error("compile " + mlp + " --levels avx3 -o " + at("no.rlxp"), "avx3");
  expect_error("compile " + mlp + " --param v=" + at("w.npy") + " -o " + at("no.rlxp"), "'v' is unknown");
  EXPECT_FALSE(std::filesystem::exists(folder / "no.rlxp"));
  std::filesystem::resize_file(folder / "mlp.rlxp", 300);
  expect_error("eval " + at("mlp.rlxp") + rest, "mlp.rlxp: it has 300 bytes, and was written with ");
}

}  // namespace
}  // namespace rlx
