#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "fixture.h"
#include "formats/json/json.h"

namespace rlx::test {
namespace {

std::string fixture_path() { return fixture("hf_more/bert-scores").string(); }

CommandResult rerank(const std::string& arguments, const std::string& lines) {
  return run_rlx("rerank --model " + fixture_path() + " --query dog " + arguments + " - <<'END'\n" + lines + "END\n");
}

TEST(RerankCommand, LinesComeSortedByScore) {
  const CommandResult table = rerank("", "A small dog\nPrices rose\nThe beach\n");
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_EQ(line_count(table.out), 3);
  const CommandResult lines = rerank("--json", "A small dog\nPrices rose\nThe beach\n");
  double last = 1;
  std::vector<bool> seen(4);
  std::istringstream in(lines.out);
  for (std::string line; std::getline(in, line);) {
    const json::Value object = json::parse(line, "line");
    EXPECT_LE(object.at("score").get<double>(), last);
    last = object.at("score");
    seen.at(object.at("line").get<std::size_t>()) = true;
  }
  EXPECT_EQ(seen, (std::vector<bool>{false, true, true, true}));
}

TEST(RerankCommand, LinesStayInOrderWhereThatIsAskedForWithTheSameScores) {
  const std::string lines = "Prices rose\nA small dog\nThe beach\nA dog\nRain\n";
  std::map<std::size_t, double> sorted;
  std::istringstream by_score(rerank("--json", lines).out), in_order(rerank("--json --in-order --batch-size 1", lines).out);
  for (std::string line; std::getline(by_score, line);) {
    const json::Value object = json::parse(line, "line");
    sorted.emplace(object.at("line").get<std::size_t>(), object.at("score").get<double>());
  }
  std::size_t number = 0;
  for (std::string line; std::getline(in_order, line);) {
    const json::Value object = json::parse(line, "line");
    EXPECT_EQ(object.at("line").get<std::size_t>(), ++number);
    EXPECT_NEAR(object.at("score").get<double>(), sorted.at(number), 1e-6);  // in a batch of another size
  }
  EXPECT_EQ(number, 5U);
}

TEST(RerankCommand, ErrorsAreOneLineAndStatusOne) {
  EXPECT_EQ(rerank("", "").out, "");
  const CommandResult wrong = run_rlx("rerank --model " + fixture("hf_more/roberta").string() + " --query dog /dev/null");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ(line_count(wrong.err), 1) << wrong.err;
  EXPECT_EQ(run_rlx("rerank --model " + fixture_path() + " /dev/null").status, 2);
}

}  // namespace
}  // namespace rlx::test
