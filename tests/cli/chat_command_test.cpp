// `rlx chat` on a terminal, typed into as a user would.
#include <poll.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "fixture.h"
#include "models/tiny_language_model.h"

namespace rlx::test {
namespace {

constexpr std::string_view prompt = ">\x1b[0m ", shell_prompt = "shell: ";
constexpr std::string_view marks_pastes = "\x1b[?2004h", marks_no_pastes = "\x1b[?2004l";

/// As terminals send what is pasted into a line that is edited.
std::string pasted(std::string_view text) { return fmt::format("\x1b[200~{}\x1b[201~", text); }

/// A conversation on a terminal of its own.
class ChatCommand : public testing::Test {
 protected:
  ChatCommand() {
    write_text(model_.path() / "chat_template.jinja", "{% for m in messages %}w2 {{ m.content }} {% endfor %}");
    setenv("XDG_STATE_HOME", folder_.path().c_str(), 1);
  }
  ~ChatCommand() override {
    if (child_ > 0) kill(child_, SIGKILL), waitpid(child_, nullptr, 0);
    if (terminal_ >= 0) close(terminal_);
  }

  /// What is seen before the first line can be typed.
  std::string start(const char* tokens, const std::string& cache = "", std::string_view end = prompt) {
    const std::string command = RLX_COMMAND, model = model_.path().string();
    setenv("TERM", "xterm", 1);
    winsize size{};
    size.ws_row = 24, size.ws_col = 200;
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ == 0) {
      execl(command.c_str(), "rlx", "chat", model.c_str(), "-n", tokens, "--context", "100000", cache.empty() ? nullptr : "--cache",
            cache.c_str(), nullptr);
      _exit(127);
    }
    return read_until(end);
  }

  /// A shell that controls jobs, on the terminal.
  void start_shell() {
    setenv("TERM", "xterm", 1);
    setenv("PS1", std::string(shell_prompt).c_str(), 1);
    child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ == 0) {
      execlp("bash", "bash", "--norc", "--noprofile", "--noediting", "-i", nullptr);
      _exit(127);
    }
  }

  /// What is seen up to and with `end` when a line is typed into the shell.
  std::string shell(std::string_view line, std::string_view end) {
    read_until(shell_prompt);
    type(fmt::format("{}\n", line));
    return read_until(end);
  }

  void start_from_shell() { shell(fmt::format(RLX_COMMAND " chat {} -n 3 --context 100000", model_.path().string()), prompt); }

  void type(std::string_view keys) const { ASSERT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size())); }

  /// What appears up to and with `end`; a failure when it does not come.
  std::string read_until(std::string_view end) {
    pollfd wait{terminal_, POLLIN, 0};
    std::size_t at = 0;
    while ((at = unread_.find(end)) == std::string::npos) {
      char bytes[4096];
      const ssize_t count = poll(&wait, 1, 60'000) == 1 ? ::read(terminal_, bytes, sizeof bytes) : 0;
      if (count <= 0 || unread_.size() > 100'000) {
        ADD_FAILURE() << "waited for " << end << " and saw " << unread_.substr(0, 1000);
        return std::exchange(unread_, {});
      }
      unread_.append(bytes, static_cast<std::size_t>(count));
    }
    std::string seen = unread_.substr(0, at + end.size());
    unread_.erase(0, seen.size());
    return seen;
  }

  std::string saved() {
    type("/save " + (folder_ / "saved").string() + "\n");
    read_until(prompt);
    return read_text(folder_ / "saved");
  }

  /// Without a terminal.
  CommandResult chat_about(std::string_view messages, std::string_view options) {
    write_text(folder_ / "messages", messages);
    return run_rlx(fmt::format("chat {} {} < {}", model_.path().string(), options, (folder_ / "messages").string()));
  }

  /// Leaves, and gives the exit status.
  int leave() {
    type("/exit\n");
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  TinyLanguageModel model_{tokenizer_of_words()};
  TemporaryFolder folder_;
  pid_t child_ = 0;
  int terminal_ = -1;
  std::string unread_;
};

TEST_F(ChatCommand, EachAnswerCanBeStopped) {
  start("0");
  for (int i = 0; i < 3; ++i) {
    type("w5 w6\n");
    read_until("\r\n");
    read_until("w");  // the answer has begun
    type("\x03");
    EXPECT_NE(read_until(prompt).find("stopped]"), std::string::npos);
  }
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, LinesAreEdited) {
  start("3");
  type("w\xC3\xA4hrend\x03");  // emptied
  type(
      "w9\x7F"
      "5\n");
  read_until("tok/s");
  read_until(prompt);
  type("/he\t\n");
  EXPECT_NE(read_until(prompt).find("forget the conversation"), std::string::npos);
  type("\x1b[A\x1b[A\n");  // the message before /help again
  read_until("tok/s");
  read_until(prompt);
  const std::string text = saved();
  EXPECT_EQ(text.find("user: w5\n\nassistant: "), 0u) << text;
  EXPECT_NE(text.find("user: w5\n\nassistant: ", 1), std::string::npos) << text;
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, TabCompletesTheNamesOfFiles) {
  std::filesystem::create_directory(folder_ / "convent");
  for (const char* file : {"conversation.json", "convent/x.json"}) write_text(folder_ / file, R"([{"role": "user", "content": "w5"}])");
  start("3");
  type("/load " + (folder_ / "conversa").string() + "\t\n");
  EXPECT_NE(read_until(prompt).find("conversation.json: 1 messages]"), std::string::npos);
  for (const char* file : {"ab\xC3\xA9.json", "ab\xC3\xA8.json"}) write_text(folder_ / file, "[]");
  type("/load " + (folder_ / "").string() + "a\t\xC3\xA9\t\n");  // as far as whole characters agree
  EXPECT_NE(read_until(prompt).find("ab\xC3\xA9.json: 0 messages]"), std::string::npos);
  type("/load " + (folder_ / "con").string() + "\tnt\tx\t\n");  // as far as both names agree; then a folder, and what is in it
  EXPECT_NE(read_until(prompt).find("convent/x.json: 1 messages]"), std::string::npos);
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, AMessageMayHaveSeveralLines) {
  start("3");
  type("\"\"\"\nw4\nw5\"\"\"\n");
  read_until("tok/s");
  read_until(prompt);
  type("w6\\\nw7\n");
  read_until("tok/s");
  read_until(prompt);
  const std::string text = saved();
  EXPECT_EQ(text.find("user: w4\nw5\n\nassistant: "), 0u) << text;
  EXPECT_NE(text.find("user: w6\nw7\n\nassistant: "), std::string::npos) << text;
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, WhatIsPastedMayEndBehindTheClosingQuotes) {
  start("3");
  type(pasted("\"\"\"w4\n\nw5\"\"\"\n") + "\n");
  read_until("tok/s");
  read_until(prompt);
  EXPECT_EQ(saved().find("user: w4\n\nw5\n\nassistant: "), 0U) << saved();
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, WhatIsPastedIsOneMessage) {
  EXPECT_NE(start("3").find(marks_pastes), std::string::npos);
  type("w3 " + pasted("w4\r\x03\x04\x1b[A\x7Fw5\r\nw6\tw7\nw8\r") + "w9 w1");
  EXPECT_EQ(read_until("w1").find(marks_no_pastes), std::string::npos);
  type("\x1b[D\x1b[D\x1b[D\x7F\x7F\n");  // without the w9
  const std::string seen = read_until("tok/s"), after = seen.substr(std::min(seen.size(), seen.find(marks_no_pastes)));
  EXPECT_TRUE(after.starts_with(marks_no_pastes)) << seen;
  EXPECT_EQ(after.find(marks_pastes), std::string::npos) << seen;
  EXPECT_NE(read_until(prompt).find(marks_pastes), std::string::npos);
  const std::string sent = "user: w3 w4\n[Aw5\nw6\tw7\nw8\n w1\n\nassistant: ";
  EXPECT_EQ(saved().find(sent), 0U) << saved();
  type(pasted("/reset\r") + "\n");
  read_until(prompt);
  EXPECT_EQ(leave(), 0);
  EXPECT_NE(read_text(folder_ / "rlx/history").find("w3 w4\\\n[Aw5\\\nw6\tw7\\\nw8\\\n w1\n"), std::string::npos);
  start("3");
  type("\x1b[A\x1b[A\x1b[A\x1b[A\n");  // before /exit, /reset and /save
  read_until("tok/s");
  read_until(prompt);
  EXPECT_EQ(saved().find(sent), 0U) << saved();
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, TheKeysOfViPasteToo) {
  write_text(folder_ / "editrc", "bind -v\n");
  setenv("EDITRC", (folder_ / "editrc").c_str(), 1);
  start("3");
  unsetenv("EDITRC");
  type("w9\x03w3 w7\x1b" + std::string("bi") + pasted("w4\rw5") + " " + "\x1b" + "A" + pasted(" w8\rw9") + " w1\n");
  read_until("tok/s");
  read_until(prompt);
  EXPECT_EQ(saved().find("user: w3 w4\nw5 w7 w8\nw9 w1\n\nassistant: "), 0U) << saved();
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, NothingPastedIsACommandOfVi) {
  write_text(folder_ / "editrc", "bind -v\n");
  setenv("EDITRC", (folder_ / "editrc").c_str(), 1);
  start("3");
  unsetenv("EDITRC");
  type("w3 w7\x1b" + std::string("0") + pasted("x\rw4 dd") + " " + pasted("w5 ") + "Aw1\n");
  read_until("tok/s");
  read_until(prompt);
  EXPECT_EQ(saved().find("user: x\nw4 ddww5 3 w7w1\n\nassistant: "), 0U) << saved();
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, APasteEndsASearch) {
  start("3");
  type("w5 w6\n");
  read_until("tok/s");
  read_until(prompt);
  type("\x12w6" + pasted("w7\rw8\x03 ") + "\n");
  read_until("tok/s");
  read_until(prompt);
  EXPECT_NE(saved().find("user: w5 w7\nw8 w6\n\nassistant: "), std::string::npos) << saved();
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, ItWaitsInTheBackgroundAndComesBack) {
  start_shell();
  start_from_shell();
  type("\x1a");
  shell("bg", "&\r\n");
  EXPECT_EQ(shell("sleep 0.5; echo seen:$?", "seen:0").find(marks_pastes), std::string::npos);
  EXPECT_NE(shell("fg", prompt).find(marks_pastes), std::string::npos);
  type("w5 w6\n");
  read_until("tok/s");
  read_until(prompt);
  type("/exit\n");
  shell("echo status:$?", "status:0");
}

TEST_F(ChatCommand, ASignalEndsItInTheBackground) {
  start_shell();
  for (const bool by_key : {true, false}) {
    start_from_shell();
    if (by_key) type("\x1a");
    else kill(-tcgetpgrp(terminal_), SIGSTOP);  // while it waits for a key
    shell("bg", "&\r\n");
    shell("sleep 0.5; kill %1; wait %1; echo status:$?", "status:143");
  }
}

TEST_F(ChatCommand, ASignalLeavesTheTerminalAsItWas) {
  start("3");
  kill(child_, SIGTERM);
  read_until(marks_no_pastes);
  int status = 0;
  waitpid(child_, &status, 0);
  child_ = 0;
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  termios now{};
  ASSERT_EQ(tcgetattr(terminal_, &now), 0);
  EXPECT_EQ(now.c_lflag & (ICANON | ECHO | ISIG), tcflag_t{ICANON | ECHO | ISIG});
  EXPECT_NE(now.c_iflag & ICRNL, 0U);
}

TEST_F(ChatCommand, LinesAreFoundAgainAnotherDay) {
  start("3");
  type("w5 w6\n");
  read_until("tok/s");
  read_until(prompt);
  EXPECT_EQ(leave(), 0);
  const std::filesystem::path file = folder_ / "rlx/history";
  EXPECT_EQ(read_text(file), "w5 w6\n/exit\n");
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  start("3");
  type("\x1b[A\x1b[A\n");  // the line before /exit
  read_until("tok/s");
  read_until(prompt);
  EXPECT_EQ(saved().find("user: w5 w6\n\nassistant: "), 0U);
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, AHistoryThatCannotBeKeptDisturbsNothing) {
  write_text(folder_ / "rlx", "where its folder should be");
  start("3");
  type("w5 w6\n");
  EXPECT_EQ(read_until(prompt).find("rlx/history"), std::string::npos);
  EXPECT_EQ(leave(), 0);
  EXPECT_EQ(read_text(folder_ / "rlx"), "where its folder should be");
}

TEST_F(ChatCommand, WithoutColoursNothingIsColoured) {
  setenv("NO_COLOR", "1", 1);
  const std::string plain = fmt::format("{}> ", marks_pastes);
  start("3", "", plain);
  unsetenv("NO_COLOR");
  type("   \n");  // no message
  EXPECT_EQ(read_until(plain).find("tok/s"), std::string::npos);
  type("w5 w6\n");
  read_until(marks_no_pastes);
  EXPECT_EQ(read_until("tok/s").find('\x1b'), std::string::npos);
  read_until(plain);
  EXPECT_EQ(leave(), 0);
}

TEST_F(ChatCommand, AModelThatHoldsNoConversationIsRefusedAtOnce) {
  for (const auto& [model, part] : {std::pair("hf/t5", "holds no conversation"), std::pair("gguf_models/t5.gguf", "holds no conversation"),
                                    std::pair("hf/llama", "no chat template"), std::pair("gguf_models/llama.gguf", "no chat template")}) {
    const CommandResult result = run_rlx(fmt::format("chat {} < /dev/null", fixture(model).string()));
    EXPECT_EQ(result.status, 1) << model;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(line_count(result.err), 1) << result.err;
  }
}

TEST_F(ChatCommand, AConversationIsKeptInAFile) {
  const std::string cache = (folder_ / "kept").string();
  const auto chat = [&](std::string_view name, std::string_view messages) {
    write_text(folder_ / "messages", fmt::format("{}\n/save {}\n", messages, (folder_ / name).string()));
    return run_rlx(
        fmt::format("chat {} -n 3 --temperature 0 --cache {} < {}", model_.path().string(), cache, (folder_ / "messages").string()));
  };
  const CommandResult first = chat("first", "w5 w6"), second = chat("second", "w7");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_NE(second.out.find("kept: 2 messages, "), std::string::npos) << second.out;
  EXPECT_EQ(chat("bytes", "w8 \xFF").status, 1);  // refused, and not kept
  std::filesystem::remove(cache);
  chat("whole", "w5 w6\nw7");
  EXPECT_EQ(read_text(folder_ / "second"), read_text(folder_ / "whole"));
  EXPECT_EQ(read_text(folder_ / "second").find(read_text(folder_ / "first")), 0U);
}

TEST_F(ChatCommand, AConversationIsKeptThoughItEndsWithoutLeave) {
  const std::string cache = (folder_ / "kept").string();
  start("3", cache);
  type("w5 w6\n");
  read_until("tok/s");
  read_until(prompt);
  kill(child_, SIGKILL), waitpid(child_, nullptr, 0);
  child_ = 0;
  const CommandResult next = run_rlx(fmt::format("chat {} --context 100000 --cache {} < /dev/null", model_.path().string(), cache));
  EXPECT_NE(next.out.find("kept: 2 messages, "), std::string::npos) << next.out << next.err;
}

TEST_F(ChatCommand, AConversationIsLoadedFromAFile) {
  const auto name = [&](const char* file) { return (folder_ / file).string(); };
  const auto chat = [&](const std::string& lines) {
    write_text(folder_ / "lines", lines);
    return run_rlx(fmt::format("chat {} -n 3 --temperature 0 < {}", model_.path().string(), name("lines")));
  };
  chat(fmt::format("w5 w6\n/save {}\nw7\n/save {}\n", name("talk.json"), name("whole")));
  const CommandResult loaded = chat(fmt::format("w9\n/load {}\nw7\n/save {}\n", name("talk.json"), name("again")));
  EXPECT_EQ(loaded.status, 0) << loaded.err;
  EXPECT_NE(loaded.out.find("talk.json: 2 messages]"), std::string::npos) << loaded.out;
  EXPECT_EQ(read_text(folder_ / "again"), read_text(folder_ / "whole"));
  write_text(folder_ / "bad.json", R"([{"role": "user"}])");
  const CommandResult failed =
      chat(fmt::format("w5\n/load {}\n/load {}\n/load x\n/load\n/save {}\n", name("bad.json"), name("no.json"), name("kept")));
  EXPECT_EQ(failed.status, 1);
  const std::string bad = failed.out + failed.err;
  EXPECT_NE(bad.find("bad.json: messages[0]: the field 'content' is missing"), std::string::npos) << bad;
  EXPECT_NE(bad.find("no.json: "), std::string::npos) << bad;
  EXPECT_NE(bad.find("/load needs the name of a .json file"), std::string::npos) << bad;
  EXPECT_EQ(read_text(folder_ / "kept").find("user: w5\n\nassistant: "), 0U);
}

TEST_F(ChatCommand, AFileThatKeepsNoConversationIsRefused) {
  const std::string model = model_.path().string(), cache = (folder_ / "cache").string(), missing = (folder_ / "no/cache").string();
  run_rlx(fmt::format("run {} -p w5 -n 2 --cache {}", model, cache));
  const std::string before = read_text(cache);
  EXPECT_NE(run_rlx(fmt::format("chat {} --cache {}", model, cache)).err.find(cache + ": holds no conversation"), std::string::npos);
  EXPECT_EQ(read_text(cache), before);
  EXPECT_NE(run_rlx(fmt::format("chat {} --cache {}", model, missing)).err.find(missing + ": cannot create: No such file"),
            std::string::npos);
}

TEST_F(ChatCommand, RunLeavesAConversationAlone) {
  const std::string cache = (folder_ / "kept").string();
  chat_about("w5 w6\n", "-n 3 --cache " + cache);
  const std::string before = read_text(cache);
  const CommandResult result = run_rlx(fmt::format("run {} -p w5 -n 2 --cache {}", model_.path().string(), cache));
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, fmt::format("rlx: {}: keeps a conversation, which would be lost (rlx chat goes on with it)\n", cache));
  EXPECT_EQ(read_text(cache), before);
}

TEST_F(ChatCommand, AConversationGoesOnAsItWasBegun) {
  const std::string choices = fmt::format("-n 3 --cache {} --system ", (folder_ / "kept").string());
  chat_about("w5 w6\n", choices + "w8");
  EXPECT_NE(chat_about("", choices + "w8").out.find("kept: 3 messages, "), std::string::npos);
  EXPECT_EQ(chat_about("", choices + "w8").out.find("begun without"), std::string::npos);
  EXPECT_NE(chat_about("", choices + "w9").out.find("in the context, begun without this --system]"), std::string::npos);
  const CommandResult shown = chat_about("/system  \n", choices + "w8");
  EXPECT_NE(shown.out.find("\nw8\n"), std::string::npos) << shown.out;
  EXPECT_NE(chat_about("", choices + "w8").out.find("kept: 3 messages, "), std::string::npos);  // it goes on
  const std::string bare = fmt::format("-n 3 --cache {}", (folder_ / "bare").string());
  EXPECT_NE(chat_about("w5 w6\n/system\n/reset\n", bare).out.find("[the model is told nothing beforehand]"), std::string::npos);
  EXPECT_NE(chat_about("", bare + " --system w9").out.find("bare: 1 messages, "), std::string::npos);
}

TEST_F(ChatCommand, ASystemTextThatIsNotUtf8IsRefused) {
  const CommandResult result = chat_about("/system w8\xff\n/system\n", "-n 3 --system w9");
  EXPECT_NE(result.err.find("rlx: /system: is not UTF-8: byte \\xff at offset 2\n"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("w9\n"), std::string::npos) << result.out;
}

TEST_F(ChatCommand, WhatIsQuotedIsNoCommand) {
  const std::string saved = (folder_ / "saved").string();
  chat_about(fmt::format("\"\"\"/exit w5\nw6\"\"\"\n/save {}\n", saved), "-n 3");
  EXPECT_EQ(read_text(saved).find("user: /exit w5\nw6\n\nassistant: "), 0U);
}

TEST_F(ChatCommand, SaysThatTheContextIsFullAndWhatMakesRoom) {
  const CommandResult result = chat_about("w5 w6\nw7 w8\n", "--context 12");
  EXPECT_NE(result.out.find(" of 12 in the context, which is full]"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("leaves no room for an answer (allowed: below 12; --context N makes room"), std::string::npos) << result.err;
}

TEST_F(ChatCommand, AMessageThatIsNotUtf8IsRefusedByItsByte) {
  const CommandResult result = chat_about("w5 \xff\nw5\n", "-n 3");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "rlx: the message: is not UTF-8: byte \\xff at offset 3\n");
  EXPECT_NE(result.out.find("tok/s"), std::string::npos) << result.out;  // the other is answered
}

TEST_F(ChatCommand, MessagesMayComeFromAFile) {
  for (const char* messages : {"w5 w6\n/exit\n", "w5 w6\r\n/exit\r\n"}) {
    const CommandResult result = chat_about(messages, "-n 3");
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out.find_first_not_of(" "), result.out.find("w")) << result.out;
    EXPECT_EQ(result.out.find('>'), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find("no command"), std::string::npos) << result.out;
  }
}

}  // namespace
}  // namespace rlx::test
