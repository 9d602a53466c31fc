#include "models/config/model_chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iomanip>
#include <sstream>

#include "fixture.h"
#include "formats/gguf/gguf_metadata.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/temporary_folder.h"
#include "message.h"

namespace rlx::test {
namespace {

std::tm time_of(const std::string& text) {
  std::tm time{};
  std::istringstream(text) >> std::get_time(&time, "%Y-%m-%dT%H:%M:%S");
  return time;
}

/// Templates of public models and what transformers 5.23 renders of them lie beside the project, because their licences are not ours.
std::filesystem::path public_templates() { return fixture("../../../shared/fixtures/chat_templates"); }

void check_case(const ChatTemplate& chat_template, const json::Value& item, const jinja::RenderOptions& options) {
  SCOPED_TRACE(item.at("name").get<std::string>() + " " + item.at("kwargs").dump());
  std::string text;
  const std::string error = whole_error_of([&] { text = chat_template.render(Chat::from_json(item), options); });
  if (item.contains("error")) EXPECT_NE(error, "no error") << "transformers: " << item.at("error") << "\nhere: " << text;
  else if (error != "no error") ADD_FAILURE() << error;
  else EXPECT_EQ(text, item.at("text").get<std::string>());
}

TEST(ChatTemplate, RendersPublicTemplatesAsTransformersDoes) {
  if (!std::filesystem::exists(public_templates())) GTEST_SKIP() << public_templates() << " is not there";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(public_templates())) {
    if (entry.path().extension() != ".jinja") continue;
    SCOPED_TRACE(entry.path().filename());
    const json::Value recorded = json::read_file(std::filesystem::path(entry.path()).replace_extension(".cases.json"));
    const ChatTemplate opened = ChatTemplate::open(entry.path());
    std::ifstream in(entry.path());
    std::stringstream source;
    source << in.rdbuf();
    const ChatTemplate with_tokens(jinja::Template::parse(source.str(), entry.path().filename()), recorded.at("special_tokens"));
    jinja::RenderOptions options;
    options.now = time_of(recorded.at("now").get<std::string>());
    EXPECT_EQ(recorded.at("cases").size(), 64u);
    for (const json::Value& item : recorded.at("cases")) check_case(with_tokens, item, options);
    ++files;
  }
  EXPECT_EQ(files, 6u);
}

constexpr const char* small_template =
    "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{{ m.reasoning_content }}{{ eos_token }}{% endfor %}"
    "{{ 'tools' if tools }}{{ '>' if add_generation_prompt }}";

json::Value parsed(const std::string& text) { return json::parse(text, "test", {.wide_integers = false}); }

std::string prompt(const ChatTemplate& chat_template, const std::string& chat) {
  return chat_template.render(Chat::from_json(parsed(chat)), {});
}

class ModelFolderWithTemplate : public testing::Test {
 protected:
  void write_config(const json::Value& config) { write_text(folder_ / "tokenizer_config.json", config.dump()); }
  ChatTemplate open(std::string_view variant = {}) { return ChatTemplate::open(folder_.path(), variant); }

  TemporaryFolder folder_;
};

TEST_F(ModelFolderWithTemplate, GivesItsTemplateAndItsTokens) {
  write_config({{"chat_template", small_template}, {"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}, {"lstrip", false}}}});
  EXPECT_EQ(prompt(open(), R"([{"role": "user", "content": "Hi"}])"), "<s>user:Hi</s>");
  EXPECT_EQ(prompt(open(), R"({"messages": [{"role": "user", "content": "Hi"}], "bos_token": "B", "add_generation_prompt": true})"),
            "Buser:Hi</s>>");
  EXPECT_EQ(prompt(open(), R"({"messages": [{"role": "a", "content": null, "thinking": "hm"}], "tools": [{}]})"), "<s>a:hm</s>tools");
}

TEST_F(ModelFolderWithTemplate, AFileOfItsOwnWinsAndOneOfSeveralIsChosen) {
  write_config({{"chat_template", {{{"name", "default"}, {"template", "D"}}, {{"name", "tool_use"}, {"template", "T"}}}}});
  const std::string chat = R"([{"role": "user", "content": "Hi"}])";
  EXPECT_EQ(prompt(open(), chat), "D");
  EXPECT_EQ(prompt(open(), R"({"messages": [{"role": "user", "content": "Hi"}], "tools": [{}]})"), "T");
  EXPECT_EQ(prompt(open("tool_use"), chat), "T");
  EXPECT_EQ(whole_error_of([&] { open("rag"); }),
            folder_.path().string() + ": there is no chat template 'rag' (allowed: 'default', 'tool_use')");
  write_text(folder_ / "chat_template.jinja", "J");
  EXPECT_EQ(prompt(open(), chat), "J");
}

TEST_F(ModelFolderWithTemplate, BadChatsAndFoldersAreRefused) {
  EXPECT_NE(whole_error_of([&] { open(); }).find("no chat template"), std::string::npos);
  write_config({{"chat_template", small_template}});
  EXPECT_EQ(whole_error_of([&] { prompt(open(), "[]"); }), "messages: the conversation is empty (at least one message is needed)");
  EXPECT_EQ(whole_error_of([&] { prompt(open(), "[1]"); }), "messages[0]: a value of type number (allowed: an object)");
  EXPECT_EQ(whole_error_of([&] { prompt(open(), R"({"messages": [{}], "tools": 1})"); }),
            "tools: a value of type number (allowed: an array of JSON schemas)");
}

TEST(ChatTemplate, IsReadFromGgufFilesWithTheTokensThatIdsName) {
  const TemporaryFolder folder;
  GgufMetadata metadata;
  metadata.set("tokenizer.chat_template", std::string_view(small_template));
  metadata.set_strings("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>"});
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  GgufWriter(folder / "m.gguf", metadata, {}).commit();
  EXPECT_EQ(prompt(ChatTemplate::open(folder / "m.gguf"), R"([{"role": "user", "content": "Hi"}])"), "<s>user:Hi</s>");
}

}  // namespace
}  // namespace rlx::test
