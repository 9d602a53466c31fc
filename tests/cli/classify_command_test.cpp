#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "fixture.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"

namespace rlx::test {
namespace {

CommandResult classify(const std::string& name, const std::string& arguments) {
  return run_rlx("classify --model " + fixture("labels/" + name).string() + " " + arguments);
}

json::Value first_row(const std::string& name) { return json::read_file(fixture("labels/" + name) / "texts.json").at("rows").at(0); }

TEST(ClassifyCommand, TextsGetTheirLikeliestLabels) {
  const json::Value row = first_row("bert-feelings");
  const std::string text = "'" + row.at("text").get<std::string>() + "'";
  const CommandResult one = classify("bert-feelings", text), all = classify("bert-feelings", "--json -k 3 " + text);
  ASSERT_EQ(one.status, 0) << one.err;
  const json::Value line = json::parse(all.out, "line");
  ASSERT_EQ(line.at("labels").size(), 3u);
  for (const json::Value& each : line.at("labels"))
    EXPECT_NEAR(each.at("score").get<double>(), row.at("labels").at(each.at("label").get<std::string>()).get<double>(), 2e-5);
  EXPECT_NE(one.out.find(line.at("labels").at(0).at("label").get<std::string>()), std::string::npos) << one.out;
  EXPECT_NE(one.out.find(row.at("text").get<std::string>()), std::string::npos) << one.out;
}

TEST(ClassifyCommand, PairsAreLabelledTogether) {
  const json::Value rows = json::read_file(fixture("labels/bert-feelings") / "texts.json").at("rows");
  const auto pair = std::ranges::find_if(rows, [](const json::Value& row) { return row.at("text").is_array(); });
  ASSERT_NE(pair, rows.end());
  const std::string first = pair->at("text").at(0), second = pair->at("text").at(1);
  const CommandResult labelled = classify("bert-feelings", "--json -k 3 --second \"" + second + "\" \"" + first + "\"");
  ASSERT_EQ(labelled.status, 0) << labelled.err;
  for (const json::Value& each : json::parse(labelled.out, "line").at("labels"))
    EXPECT_NEAR(each.at("score").get<double>(), pair->at("labels").at(each.at("label").get<std::string>()).get<double>(), 2e-5);
  EXPECT_EQ(classify("bert-tokens", "--second dog 'A dog'").status, 1);
}

TEST(ClassifyCommand, PartsAreThoseOfEachLine) {
  const json::Value row = first_row("distilbert-tokens");
  const CommandResult lines =
      classify("distilbert-tokens", "--json --batch-size 1 --file - <<'END'\nRain\n" + row.at("text").get<std::string>() + "\nEND\n");
  ASSERT_EQ(line_count(lines.out), 2) << lines.err;
  const json::Value second = json::parse(lines.out.substr(lines.out.find('\n') + 1), "line");
  EXPECT_EQ(second.at("line"), 2);
  ASSERT_EQ(second.at("parts").size(), row.at("labels").size());
  for (std::size_t i = 0; i < row.at("labels").size(); ++i) {
    const json::Value &part = second.at("parts").at(i), &expected = row.at("labels").at(i);
    for (const char* field : {"label", "begin", "end"}) EXPECT_EQ(part.at(field), expected.at(field));
    const std::size_t begin = part.at("begin"), end = part.at("end");
    EXPECT_EQ(part.at("text").get<std::string>(), row.at("text").get<std::string>().substr(begin, end - begin));
  }
}

TEST(ClassifyCommand, ErrorsAreOneLineAndStatusOne) {
  for (const CommandResult& wrong :
       {classify("bert-tokens", ""), run_rlx("classify --model " + fixture("hf/llama").string() + " 'A dog'")}) {
    EXPECT_EQ(wrong.status, 1);
    EXPECT_EQ(line_count(wrong.err), 1) << wrong.err;
  }
}

TEST(ClassifyCommand, ErrorsCountTextsFromTheFilesFirst) {
  const TemporaryFolder folder;
  for (const char* file : {"model.safetensors", "config.json"})
    std::filesystem::copy_file(fixture("labels/distilbert-tokens") / file, folder / file);
  json::Value tokenizer = json::read_file(fixture("labels/distilbert-tokens/tokenizer.json"));
  tokenizer["post_processor"] = nullptr;
  write_text(folder / "tokenizer.json", tokenizer.dump());
  const CommandResult wrong =
      run_rlx("classify --model " + folder.path().string() + " --batch-size 1 --file - <<'END'\nRain\nRain\nRain\n\nRain\nEND\n");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("text 4: the tokenizer gives no tokens"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace rlx::test
