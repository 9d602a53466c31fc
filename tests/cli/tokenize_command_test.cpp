// What `rlx tokenize` prints of the recorded texts of tests/fixtures/tokenizers.
#include <gtest/gtest.h>

#include <sstream>

#include "cli/run_command.h"
#include "fixture.h"
#include "formats/json/json.h"
#include "models/tiny_language_model.h"

namespace rlx::test {
namespace {

using json::Value;

/// One word of a shell's command line.
std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

/// What each line of the output holds.
std::vector<Value> lines_of(const std::string& text) {
  std::vector<Value> values;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) values.push_back(json::parse(line, "line"));
  return values;
}

/// What is recorded of a text, as the command prints it.
Value answer_of(const Value& item) {
  Value answer;
  for (const char* name : {"ids", "ids_special", "decoded", "decoded_skip"}) answer[name] = item.at(name);
  return answer;
}

class TokenizeCommand : public testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path folder_ = fixture("tokenizers") / GetParam();
  Value cases_ = json::read_file(folder_ / "cases.json");

  CommandResult tokenize(const std::string& arguments) const {
    CommandResult result = run_rlx(fmt::format("tokenize --model {} {}", (folder_ / "tokenizer.json").string(), arguments));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result;
  }

  /// The ids of all texts, each one word of a command line.
  std::string all_ids() const {
    std::string words;
    for (const Value& item : cases_) words += fmt::format(" '{}'", item.at("ids").dump());
    return words;
  }
};

TEST_P(TokenizeCommand, AnswersEachLineWithWhatIsRecorded) {
  const TemporaryFolder files;
  std::string lines;
  bool escaped = false;  // other programs write JSON both ways
  for (const Value& item : cases_) lines += item.at("text").dump(-1, ' ', escaped = !escaped) + "\n";
  write_text(files / "lines", lines);
  const std::vector<Value> answers = lines_of(tokenize("--jsonl < " + (files / "lines").string()).out);
  ASSERT_EQ(answers.size(), 51U);
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], answer_of(cases_[i])) << cases_[i].at("text");
}

TEST_P(TokenizeCommand, PrintsOneObjectATextWithJson) {
  std::string words;
  std::vector<Value> expected;
  for (const Value& item : cases_) {
    const auto text = item.at("text").get<std::string>();
    if (text.empty() || text.find('\0') != std::string::npos) continue;  // what no command line holds
    words += " " + shell_word(text);
    expected.push_back(answer_of(item));
  }
  EXPECT_EQ(expected.size(), 49U);
  EXPECT_EQ(lines_of(tokenize("--json" + words).out), expected);
}

TEST_P(TokenizeCommand, TurnsIdsIntoTheRecordedTexts) {
  std::string plain;
  std::vector<Value> decoded, decoded_skip;
  for (const Value& item : cases_) {
    plain += item.at("decoded").get<std::string>() + "\n";
    decoded.push_back(item.at("decoded"));
    decoded_skip.push_back(item.at("decoded_skip"));
  }
  EXPECT_NE(decoded, decoded_skip);  // there are special tokens in the texts
  EXPECT_EQ(tokenize("--ids" + all_ids()).out, plain);
  EXPECT_EQ(lines_of(tokenize("--ids --json" + all_ids()).out), decoded);
  EXPECT_EQ(lines_of(tokenize("--ids --json --no-special" + all_ids()).out), decoded_skip);
}

TEST_P(TokenizeCommand, ListsTheTokensOfAText) {
  const Value& item = cases_[3];
  const std::string text = shell_word(item.at("text").get<std::string>());
  std::istringstream lines(tokenize("--no-special " + text).out);
  std::string line, pieces;
  for (const Value& id : item.at("ids")) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line.substr(0, 10), fmt::format("{:>8}  ", id.get<int>()));
    pieces += json::parse(line.substr(10), "piece").get<std::string>();
  }
  if (pieces.starts_with(' ')) pieces.erase(0, 1);           // before the first word there is none
  EXPECT_EQ(pieces, item.at("decoded").get<std::string>());  // pieces are text, and make it
  EXPECT_TRUE(std::getline(lines, line) && line == fmt::format("{} tokens", item.at("ids").size())) << line;
  EXPECT_EQ(tokenize("--count " + text).out, fmt::format("{}\n", item.at("ids_special").size()));
}

INSTANTIATE_TEST_SUITE_P(All, TokenizeCommand, testing::Values("bpe-llama3", "wordpiece-uncased"), [](const auto& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
});

TEST(TokenizeText, BytesThatAreNoCharactersAreShownAsSuch) {
  const TinyLanguageModel bytes(tokenizer_of_bytes());
  const CommandResult result = run_rlx(fmt::format("tokenize --model {} 'a\u00e9 '", bytes.path().string()));
  EXPECT_EQ(result.out, fmt::format("{:>8}  \"a\"\n{:>8}  <0xC3>\n{:>8}  <0xA9>\n{:>8}  \" \"\n4 tokens\n", 97, 195, 169, 32))
      << result.err;
  EXPECT_EQ(run_rlx(fmt::format("tokenize --model {} 'a\xff'", bytes.path().string())).err,
            "rlx: the text: is not UTF-8: byte \\xff at offset 1\n");
}

TEST(TokenizeLines, AWrongLineIsNamedBehindTheAnswersBeforeIt) {
  const TemporaryFolder files;
  const std::string model = fixture("tokenizers/bpe-llama3/tokenizer.json").string(), lines = (files / "lines").string();
  for (const auto& [line, part] : {std::pair("3", "standard input: line 2: expected a JSON string, found a value of type number"),
                                   std::pair("no JSON", "standard input: line 2: ")}) {
    write_text(lines, fmt::format("\"a\"\n{}\n\"b\"\n", line));
    const CommandResult result = run_rlx(fmt::format("tokenize --model {} --jsonl < {}", model, lines));
    EXPECT_EQ(result.status, 1) << line;
    EXPECT_EQ(line_count(result.out), 1) << result.out;
    EXPECT_EQ(result.err.find(fmt::format("rlx: {}", part)), 0U) << result.err;
    EXPECT_EQ(line_count(result.err), 1) << result.err;
  }
}

}  // namespace
}  // namespace rlx::test
