#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "formats/temporary_folder.h"

namespace rlx::test {
namespace {

class TemplateCommand : public testing::Test {
 protected:
  TemplateCommand() {
    write_text(folder_ / "t.jinja",
               "{% for m in messages %}{{ m.content }}\n{% endfor %}{{ x }}{{ 'go' if add_generation_prompt }}{{ strftime_now('%a %F') }}");
    write_text(folder_ / "m.json", R"([{"role": "user", "content": "Hi ü"}])");
  }
  CommandResult prompt(const std::string& more, const std::string& now = "2026-01-02T03:04:05") {
    return run_rlx(fmt::format("template --model {0}/t.jinja --messages {0}/m.json --now {1} {2}", folder_.path().string(), now, more));
  }

  TemporaryFolder folder_;
};

TEST_F(TemplateCommand, PrintsThePromptAndNothingElse) {
  const CommandResult plain = prompt("");
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(plain.out, "Hi ü\nFri 2026-01-02");
  EXPECT_EQ(prompt("--add-generation-prompt --set x=12345678901234567").out, "Hi ü\n12345678901234567goFri 2026-01-02");
}

TEST_F(TemplateCommand, EndsAsTheMessagesSayUnlessAnOptionDoes) {
  write_text(folder_ / "m.json", R"({"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": true})");
  EXPECT_EQ(prompt("").out, "Hi\ngoFri 2026-01-02");
  EXPECT_EQ(prompt("--no-add-generation-prompt").out, "Hi\nFri 2026-01-02");
  EXPECT_EQ(prompt("--no-add-generation-prompt --add-generation-prompt").status, 2);
  EXPECT_NE(prompt("--add-generation-prompt=false").status, 0);
}

TEST_F(TemplateCommand, SaysWhatIsWrongInOneLine) {
  for (const char* more : {"--set x={", "--tools /dev/null", "--variant x"}) {
    const CommandResult result = prompt(more);
    EXPECT_EQ(result.status, 1) << more;
    EXPECT_EQ(line_count(result.err), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  for (const char* now : {"yesterday", "2026-02-30T03:04:05", "2026-13-01T03:04:05"}) {
    const CommandResult result = prompt("", now);
    EXPECT_EQ(result.status, 2) << now;
    EXPECT_NE(result.err.find("is not a time (allowed: YYYY-MM-DDTHH:MM:SS)"), std::string::npos) << result.err;
  }
  EXPECT_EQ(prompt("", "2028-02-29T03:04:05").out, "Hi ü\nTue 2028-02-29");
  EXPECT_EQ(prompt("--set =1").status, 2);
}

TEST_F(TemplateCommand, NamesTheFileAndTheField) {
  const std::string messages = (folder_ / "m.json").string(), tools = (folder_ / "tools.json").string();
  for (const auto& [text, error] : {std::pair("3", "a value of type number (allowed: an array of messages, or an object that has them"),
                                    std::pair("{}", "an object without 'messages' (allowed: "),
                                    std::pair("[]", "messages: the conversation is empty (at least one message is needed)"),
                                    std::pair("{\"messages\": 1}", "messages: a value of type number (allowed: an array of objects)"),
                                    std::pair("[{}, 1]", "messages[1]: a value of type number (allowed: an object)"),
                                    std::pair("{\"messages\": [{}], \"kwargs\": 1}", "kwargs: a value of type number (allowed: an object)"),
                                    std::pair("[", "line 1, column 2: ")}) {
    write_text(messages, text);
    EXPECT_EQ(prompt("").err.find(fmt::format("rlx: {}: {}", messages, error)), 0U) << prompt("").err;
    EXPECT_EQ(run_rlx(fmt::format("template --model {} --messages - < {}", (folder_ / "t.jinja").string(), messages))
                  .err.find(fmt::format("rlx: standard input: {}", error)),
              0U);
  }
  write_text(messages, R"([{"role": "user"}])");
  write_text(tools, "{}");
  EXPECT_EQ(prompt("--tools " + tools).err,
            fmt::format("rlx: {}: tools: a value of type object (allowed: an array of JSON schemas)\n", tools));
}

}  // namespace
}  // namespace rlx::test
