// Answers on a terminal of 20 columns.
#include <pty.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "models/tiny_language_model.h"

namespace rlx::test {
namespace {

/// What a terminal shows of what is sent to it: text, line ends, and the two sequences that take back a word.
std::vector<std::string> screen_of(const std::string& sent) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (sent[i] == '\n') lines.emplace_back();
    else if (sent.compare(i, 2, "\x1b[") == 0) {
      std::size_t end = sent.find_first_not_of("0123456789;?", i + 2);
      const std::size_t count = std::strtoul(sent.c_str() + i + 2, nullptr, 10);
      if (sent[end] == 'D') lines.back().resize(lines.back().size() - count);
      i = end;
    } else if (sent[i] == '\t') lines.back().resize((lines.back().size() / 8 + 1) * 8, ' ');
    else if (sent[i] != '\r') lines.back() += sent[i];
  }
  return lines;
}

/// What `rlx chat` sends to a terminal of 20 columns as its answer of `tokens` tokens.
std::string answer_on_a_terminal(const TinyLanguageModel& model, const std::string& message, int tokens, const std::string& choices) {
  write_text(model.path() / "chat_template.jinja", "{% for m in messages %}w2 {{ m.content }} {% endfor %}");
  const std::string command = RLX_COMMAND, path = model.path().string();
  setenv("TERM", "xterm", 1);
  setenv("NO_COLOR", "1", 1);
  winsize size{};
  size.ws_row = 24, size.ws_col = 20;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    const std::string line = fmt::format("echo {} | {} chat {} -n {} --temperature 0 {}", message, command, path, tokens, choices);
    execlp("sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  std::string sent;
  char bytes[4096];
  for (ssize_t count = 0; (count = read(terminal, bytes, sizeof bytes)) > 0;) sent.append(bytes, static_cast<std::size_t>(count));
  close(terminal);
  waitpid(child, nullptr, 0);
  const std::size_t end = sent.find(fmt::format("[{} tokens", tokens));
  EXPECT_NE(end, std::string::npos) << sent;
  return sent.substr(0, end);
}

TEST(WrappedText, LinesBreakBetweenWords) {
  const std::string sent = answer_on_a_terminal(TinyLanguageModel(tokenizer_of_words()), "w5 w6", 40, "");
  std::size_t words = 0;
  const std::vector<std::string> lines = screen_of(sent);
  EXPECT_GE(lines.size(), 7U);
  for (const std::string& line : lines) {
    EXPECT_LT(line.size(), 20U) << line;
    for (std::size_t at = line.find('w'); at != std::string::npos; at = line.find('w', at + 1)) {
      ++words;
      EXPECT_NE(line.find_first_of("0123456789", at), std::string::npos) << line;  // none is broken behind its letter
      EXPECT_EQ(line[at + 1] >= '0' && line[at + 1] <= '9', true) << line;
    }
    EXPECT_TRUE(line.empty() || line[line.find_first_not_of(' ') == std::string::npos ? 0 : line.find_first_not_of(' ')] == 'w' ||
                line == " ")
        << line;
  }
  EXPECT_EQ(words, 40U);
}

TEST(WrappedText, TabsReachToTheirStops) {
  const TinyLanguageModel model(tokenizer_of_bytes());
  write_text(model.path() / "answer.gbnf", "root ::= \"\\tabcdefgh ijk\\n0123456789abcde\\tl m\"\n");
  const std::string sent = answer_on_a_terminal(model, "x", 33, "--grammar " + (model.path() / "answer.gbnf").string());
  EXPECT_EQ(screen_of(sent), (std::vector<std::string>{"        abcdefgh ", "ijk", "0123456789abcde l m", ""})) << sent;
}

}  // namespace
}  // namespace rlx::test
