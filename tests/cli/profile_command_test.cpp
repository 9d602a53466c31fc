// `rlx profile` as a user runs it: the table, the trace and the page.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "cli/run_command.h"
#include "fixture.h"
#include "formats/json/json.h"

namespace rlx {
namespace {

using test::run_rlx;

const std::string graph_file = test::quoted(test::fixture("graphs/mlp.rlx"));

json::Value explanation() { return json::parse(run_rlx(fmt::format("explain {} --json --no-time", graph_file)).out, "explain"); }

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Profile, TellsTheTimeOfEachKernel) {
  const auto ended = run_rlx(fmt::format("profile {} --repeats 2 --threads 1", graph_file));
  ASSERT_EQ(ended.status, 0) << ended.err;
  const auto explained = explanation();
  for (const auto& launch : explained["launches"])
    EXPECT_NE(ended.out.find(launch["layer"].get<std::string>() + ": " + launch["ops"].get<std::string>()), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("w: dot, mul, reduce"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("Thread 0 busy "), std::string::npos) << ended.out;
  EXPECT_TRUE(std::regex_search(ended.out, std::regex(R"(reached  bound\n)"))) << ended.out;
  EXPECT_TRUE(std::regex_search(ended.out, std::regex(R"(w: dot, mul, reduce .*%  (memory|compute)\n)"))) << ended.out;
  const std::regex time(R"(The fastest run: (\d+\.\d\d us|[1-9]\d*\.\d{3} ms)\.)");
  EXPECT_TRUE(std::regex_search(ended.out, time)) << ended.out;
}

TEST(Profile, OfAnotherDeviceHasNoThreads) {
  const auto ended = run_rlx(fmt::format("profile {} --repeats 2 --device opencl", graph_file));
  if (ended.err.find("no device") != std::string::npos) GTEST_SKIP() << ended.err;
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find(" opencl:0 busy "), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("Thread"), std::string::npos) << ended.out;
}

TEST(Profile, TellsLayersAndPassesOfAGradient) {
  const test::TemporaryFolder folder;
  const std::string graph = fmt::format("'{}'", (folder / "grad.rlx").string());
  ASSERT_EQ(run_rlx(fmt::format("grad {} --wrt w --value -o {}", graph_file, graph)).status, 0);
  const auto ended = run_rlx(fmt::format("profile {} --repeats 2 --threads 1", graph));
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find("forward: "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("backward: "), std::string::npos) << ended.out;
}

TEST(Profile, TakesLanguageModels) {
  const std::string model = fmt::format("--model '{}'", test::fixture("hf/llama").string());
  for (const char* run : {"--prompt 7", "--tokens 5"}) {
    const auto together = run_rlx(fmt::format("profile {} {} --repeats 2 --threads 1", model, run));
    ASSERT_EQ(together.status, 0) << together.err;
    // Both layers in one line, though the second shares constants with the first.
    EXPECT_TRUE(std::regex_search(together.out, std::regex(R"(\nlayers\.\*\.ffn\.gate: linear, silu +claim +2 )"))) << together.out;
    const auto each = run_rlx(fmt::format("profile {} {} --repeats 2 --threads 1 --layers", model, run));
    EXPECT_NE(each.out.find("layers.1."), std::string::npos) << each.out;
  }
  const auto nodes = run_rlx(fmt::format("explain {} --tokens 5 --no-time", model));
  ASSERT_EQ(nodes.status, 0) << nodes.err;
  EXPECT_NE(nodes.out.find("attention in layers.1.attention: "), std::string::npos) << nodes.out;
  EXPECT_EQ(run_rlx(fmt::format("profile {} --prompt 5 --tokens 5", model)).status, 2);
}

TEST(Profile, WritesATraceOfEveryLaunch) {
  const test::TemporaryFolder folder;
  const auto file = folder / "trace.json";
  ASSERT_EQ(run_rlx(fmt::format("profile {} --trace '{}'", graph_file, file.string())).status, 0);
  std::set<std::size_t> launches;
  const json::Value trace = json::read_file(file);
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    if (event.contains("args")) launches.insert(event["args"]["launch"].get<std::size_t>());
  }
  const auto explained = explanation();
  EXPECT_EQ(launches.size(), explained["launches"].size());
}

TEST(Profile, WritesAPageThatNeedsNothingElse) {
  const test::TemporaryFolder folder;
  const auto file = folder / "page.html";
  ASSERT_EQ(run_rlx(fmt::format("profile {} --html '{}'", graph_file, file.string())).status, 0);
  const std::string page = test::read_text(file);
  const auto explained = explanation();
  std::size_t with_flops = 0;
  for (const auto& launch : explained["launches"]) with_flops += launch["flops"].get<double>() > 0;
  EXPECT_EQ(count(page, "<circle "), with_flops);
  EXPECT_EQ(count(page, "<tr><td>"), explained["launches"].size());
  EXPECT_EQ(count(page, "<svg "), 2u);
  EXPECT_NE(page.find(" GFLOP/s</text>"), std::string::npos);
  for (const char* remote : {"src=", "href=", "@import", "nan", "inf\""}) EXPECT_EQ(page.find(remote), std::string::npos) << remote;
}

TEST(Profile, ARefusedFileLeavesNothing) {
  const auto ended = run_rlx(fmt::format("profile {} --html /nowhere/page.html", graph_file));
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("/nowhere/page.html"), std::string::npos) << ended.err;
}

TEST(Profile, TheTimelineAndThePageNeedAFileEach) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "both").string();
  const auto ended = run_rlx(fmt::format("profile {} --trace '{}' --html '{}'", graph_file, file, file));
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.err, fmt::format("rlx: {}: --trace and --html need a file each\n", file));
  EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace rlx
