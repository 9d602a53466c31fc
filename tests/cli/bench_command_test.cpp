// What `rlx bench` prints; how long anything takes is no part of it.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <sstream>

#include "cli/run_command.h"
#include "fixture.h"
#include "formats/json/json.h"

namespace rlx::test {
namespace {

CommandResult bench(const std::string& arguments) {
  CommandResult result = run_rlx(fmt::format("bench {} {}", fixture("gguf_models/llama.gguf").string(), arguments));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err.find("loaded in "), 0U) << result.err;
  EXPECT_EQ(line_count(result.err), 1) << result.err;
  return result;
}

/// The rows of --json, each of which must be consistent.
std::vector<json::Value> rows_of(const std::string& arguments, std::size_t repeats) {
  std::vector<json::Value> rows;
  std::istringstream in(bench(fmt::format("{} -r {} --json", arguments, repeats)).out);
  for (std::string line; std::getline(in, line);) {
    const json::Value& row = rows.emplace_back(json::parse(line, "line"));
    const auto samples = row.at("samples").get<std::vector<double>>();
    EXPECT_EQ(row.size(), 6U) << line;
    EXPECT_EQ(row.at("model"), fixture("gguf_models/llama.gguf").string());
    EXPECT_EQ(samples.size(), repeats);
    double sum = 0, squares = 0;
    for (const double each : samples) {
      EXPECT_GT(each, 0) << line;
      EXPECT_TRUE(std::isfinite(each)) << line;
      sum += each;
    }
    const double mean = sum / static_cast<double>(repeats);
    for (const double each : samples) squares += (each - mean) * (each - mean);
    EXPECT_NEAR(row.at("tokens_per_second").get<double>(), mean, 1e-6 * mean);
    const double deviation = repeats < 2 ? 0 : std::sqrt(squares / static_cast<double>(repeats - 1));
    EXPECT_NEAR(row.at("deviation").get<double>(), deviation, 1e-6 * mean);
  }
  return rows;
}

std::vector<std::string> names_of(const std::vector<json::Value>& rows) {
  std::vector<std::string> names;
  for (const json::Value& row : rows) names.push_back(row.at("test").get<std::string>());
  return names;
}

using Names = std::vector<std::string>;

TEST(BenchCommand, PrintsARowForThePromptAndOneForTokens) {
  const std::string rate = " +([0-9]+\\.[0-9]{2}) ± [0-9]+\\.[0-9]{2} tok/s\n";
  const std::string both = bench("-p 8 -n 3 -r 2").out, one = bench("-p 0 -n 3 -r 2").out;
  std::smatch found;
  ASSERT_TRUE(std::regex_match(both, found, std::regex("pp8" + rate + "tg3" + rate))) << both;
  EXPECT_GT(std::stod(found[1]), 0);
  EXPECT_GT(std::stod(found[2]), 0);
  EXPECT_TRUE(std::regex_match(one, std::regex("tg3" + rate))) << one;
}

TEST(BenchCommand, JsonHoldsEachMeasurement) {
  const std::vector<json::Value> rows = rows_of("-p 8 -n 3 --threads 1", 2);
  EXPECT_EQ(names_of(rows), (Names{"pp8", "tg3"}));
  for (const json::Value& row : rows) EXPECT_EQ(row.at("threads"), 1);
  EXPECT_EQ(names_of(rows_of("-p 8 -n 0", 1)), (Names{"pp8"}));
}

TEST(BenchCommand, RowsNameSequencesAndDepth) {
  EXPECT_EQ(names_of(rows_of("-p 8 -n 3 -d 5", 3)), (Names{"pp8 @ 5", "tg3 @ 5"}));
  EXPECT_EQ(names_of(rows_of("-p 8 -n 3 -s 2", 2)), (Names{"pp8 x 2", "tg3 x 2"}));
  EXPECT_EQ(names_of(rows_of("-p 8 -n 3 -s 3 -d 5", 2)), (Names{"pp8 x 3 @ 5", "tg3 x 3 @ 5"}));
}

}  // namespace
}  // namespace rlx::test
