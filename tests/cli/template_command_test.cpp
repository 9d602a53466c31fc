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
  CommandResult prompt(const std::string& more) {
    return run_rlx(
        fmt::format("template --model {0}/t.jinja --messages {0}/m.json --now 2026-01-02T03:04:05 {1}", folder_.path().string(), more));
  }

  TemporaryFolder folder_;
};

TEST_F(TemplateCommand, PrintsThePromptAndNothingElse) {
  const CommandResult plain = prompt("");
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(plain.out, "Hi ü\nFri 2026-01-02");
  EXPECT_EQ(prompt("--add-generation-prompt --set x=12345678901234567").out, "Hi ü\n12345678901234567goFri 2026-01-02");
}

TEST_F(TemplateCommand, SaysWhatIsWrongInOneLine) {
  for (const char* more : {"--set x={", "--tools /dev/null", "--variant x"}) {
    const CommandResult result = prompt(more);
    EXPECT_EQ(result.status, 1) << more;
    EXPECT_EQ(line_count(result.err), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(prompt("--now yesterday").status, 2);
  EXPECT_EQ(prompt("--set =1").status, 2);
}

}  // namespace
}  // namespace rlx::test
