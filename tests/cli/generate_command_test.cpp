#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include <sstream>

#include "cli/run_command.h"
#include "models/tiny_language_model.h"

namespace rlx::test {
namespace {

class RunCommand : public testing::Test {
 protected:
  static CommandResult run(const std::string& arguments) {
    return run_rlx(fmt::format("run {} -p '{}' {}", folder().string(), words_of(recorded_ids("prompt_ids")), arguments));
  }
  static std::filesystem::path folder() {
    static const TinyLanguageModel words(tokenizer_of_words());
    return words.path();
  }
  /// The recorded answer, after `count` tokens.
  static std::string recorded_answer(std::size_t count) {
    const auto prompt = recorded_ids("prompt_ids"), all = recorded_ids("greedy_ids");
    return " " + words_of(std::span(all).subspan(prompt.size(), count));
  }
};

TEST_F(RunCommand, PrintsTheRecordedContinuation) {
  const CommandResult result = run("-n 9");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, recorded_answer(9) + "\n");
  EXPECT_NE(result.err.find("answer: 9 tokens"), std::string::npos) << result.err;
}

TEST_F(RunCommand, TakesAdaptersWithTheirScales) {
  const auto prompt = recorded_ids("prompt_ids", "lora/llama"), all = recorded_ids("greedy_ids", "lora/llama");
  const std::string adapter = fixture("lora/llama").string();
  const std::string command = fmt::format("run {} -p '{}' -n 14 --lora {}", folder().string(), words_of(prompt), adapter);
  const std::string answer = " " + words_of(std::span(all).subspan(prompt.size())) + "\n";
  EXPECT_EQ(run_rlx(command).out, answer);
  EXPECT_EQ(run_rlx(fmt::format("{}:0.5 --lora {}:5e-1", command, adapter)).out, answer);
  EXPECT_EQ(run(fmt::format("-n 9 --lora {}:0", adapter)).out, recorded_answer(9) + "\n");
  const CommandResult wrong = run(fmt::format("--lora {}:much", adapter));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ(wrong.err, fmt::format("rlx: {}:much: no adapter (a folder of PEFT's or a GGUF file is needed)\n", adapter));
}

TEST_F(RunCommand, DividesLayersBetweenDevices) {
  EXPECT_EQ(run("-n 9 --layers-on cpu=1").out, recorded_answer(9) + "\n");
  EXPECT_EQ(run("-n 9 --layers-on cpu=1,cpu=1").out, recorded_answer(9) + "\n");
  const CommandResult many = run("--layers-on cpu=1,cpu=2"), wrong = run("--layers-on cpu=x");
  EXPECT_EQ(many.status, 1);
  EXPECT_EQ(many.err, "rlx: layers on cpu: 2 (allowed: 1..1, as the model has 2)\n");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("cpu=x (allowed: NAME=LAYERS, such as cuda:0=20)"), std::string::npos) << wrong.err;
}

TEST_F(RunCommand, LimitsAnswersToAGrammar) {
  const TemporaryFolder files;
  write_file(files / "g.gbnf", "root ::= \" w7\"\n  | \" w8\"\n");
  write_file(files / "bad.gbnf", "root ::= \" w7\"\nx = 1\n");
  EXPECT_NE(std::string(" w7\n w8\n").find(run(fmt::format("--grammar {}", (files / "g.gbnf").string())).out), std::string::npos);
  const CommandResult bad = run(fmt::format("--grammar {}", (files / "bad.gbnf").string()));
  EXPECT_EQ(bad.status, 1);
  EXPECT_EQ(bad.err, fmt::format("rlx: {}: line 2, column 3: expected '::=', found '='\n", (files / "bad.gbnf").string()));
  const CommandResult schema = run("--json-schema '{\"type\": 3}'");
  EXPECT_EQ(schema.status, 1);
  EXPECT_EQ(schema.err.substr(0, 20), "rlx: --json-schema: ") << schema.err;
  EXPECT_EQ(run("--json-schema '{}' --grammar g").status, 2);
}

TEST_F(RunCommand, PrintsLogProbabilities) {
  const CommandResult plain = run("-n 3 --logprobs 2"), lines = run("-n 3 --logprobs 2 --json");
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(line_count(plain.out), 3) << plain.out;
  const auto prompt = recorded_ids("prompt_ids"), all = recorded_ids("greedy_ids");
  std::istringstream in(lines.out);
  std::string line;
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(std::getline(in, line));
    const json::Value token = json::parse(line, "line");
    EXPECT_EQ(token.at("id"), all[prompt.size() + i]);
    EXPECT_EQ(token.at("text"), fmt::format(" w{}", all[prompt.size() + i]));
    EXPECT_EQ(token.at("likeliest").size(), 2u);
    EXPECT_EQ(token.at("likeliest")[0].at("id"), token.at("id"));
    EXPECT_EQ(token.at("likeliest")[0].at("logprob"), token.at("logprob"));
  }
  ASSERT_TRUE(std::getline(in, line));
  EXPECT_EQ(json::parse(line, "line").at("finish_reason"), "max_tokens");
}

TEST_F(RunCommand, EachOptionOfManyTakesOneWord) {
  const std::string text = words_of(recorded_ids("prompt_ids")), answer = recorded_answer(9);
  const std::string last = answer.substr(answer.rfind(' '));
  for (const std::string& option : {"--stop '" + last + "'", std::string("--dry-breaker w9"), std::string("--logit-bias 5:0")}) {
    const CommandResult result = run_rlx(fmt::format("run {} -n 9 {} '{}' < /dev/null", folder().string(), option, text));
    EXPECT_EQ(result.status, 0) << option << result.err;
    EXPECT_EQ(result.out, (option.starts_with("--stop") ? answer.substr(0, answer.find(last)) : answer) + "\n") << option;
  }
}

TEST_F(RunCommand, KeepsItsCacheInAFile) {
  const TemporaryFolder files;
  const std::string file = (files / "cache").string();
  EXPECT_EQ(run("-n 5 --cache " + file).out, recorded_answer(5) + "\n");
  EXPECT_EQ(run("-n 9 --cache " + file).out, recorded_answer(9) + "\n");
  write_file(file, "no cache");
  const CommandResult wrong = run("-n 9 --cache " + file);
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ(wrong.err.substr(0, 5 + file.size()), "rlx: " + file);
  EXPECT_EQ(read_text(file), "no cache");
}

TEST_F(RunCommand, AnInterruptKeepsTheCacheAndEndsTheOutput) {
  const TemporaryFolder files;
  const std::string file = (files / "cache").string(), out = (files / "out").string();
  const std::string line = fmt::format("exec {} run {} -n 0 --json --context 200000 --no-stats --cache {} -p '{}' > {} 2> /dev/null",
                                       RLX_COMMAND, folder().string(), file, words_of(recorded_ids("prompt_ids")), out);
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  std::error_code error;
  for (int i = 0; i < 60000 && !(std::filesystem::exists(out) && std::filesystem::file_size(out, error) > 0); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until an answer has begun that takes long
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_TRUE(read_text(out).ends_with("\"finish_reason\":\"cancelled\"}\n"));
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(run("-n 9 --context 200000 --no-stats --cache " + file).out, recorded_answer(9) + "\n");
}

TEST_F(RunCommand, WarnsOfAContextThatTheModelWasNotTrainedFor) {
  const std::string warning =
      "rlx: a context of 300 tokens is longer than the 256 that the model was trained for: text behind those may make no sense\n";
  EXPECT_EQ(run("-n 1 --no-stats --context 300").err, warning);
  EXPECT_EQ(run("-n 1 --no-stats --context 256").err, "");
  const CommandResult bench = run_rlx(fmt::format("bench {} -p 300 -n 0 -r 1", folder().string()));
  EXPECT_EQ(bench.err.find(warning), 0U) << bench.err;
}

TEST_F(RunCommand, TellsThatAPrecisionDoesNotReachBlocks) {
  const std::string blocks = fixture("gguf_models/llama.gguf").string();
  const TemporaryFolder files;
  const std::string small = (files / "small.gguf").string();
  ASSERT_EQ(run_rlx(fmt::format("quantize {} {} --type Q8_0", blocks, small)).status, 0);
  const std::string warning =
      "rlx: --precision does not reach matrices in blocks, as this model's are (--activations says how they multiply)\n";
  EXPECT_EQ(run_rlx(fmt::format("bench {} --precision bf16 -p 2 -n 0 -r 1", small)).err.find(warning), 0U);
  EXPECT_EQ(run("-n 1 --no-stats --precision bf16").err, "");
}

TEST_F(RunCommand, TheEndOfAFilesLastLineIsNoPartOfThePrompt) {
  const TemporaryFolder files;
  const TinyLanguageModel bytes(tokenizer_of_bytes());
  const auto answer = [&](const std::string& text) {
    write_file(files / "prompt", text);
    return run_rlx(fmt::format("run {} -n 9 -f {}", bytes.path().string(), (files / "prompt").string())).out;
  };
  EXPECT_EQ(answer("two\nlines\n"), answer("two\nlines"));
  EXPECT_EQ(answer("two\nlines\r\n"), answer("two\nlines"));
  EXPECT_NE(answer("two\nlines\n\n"), answer("two\nlines"));
}

TEST_F(RunCommand, TakesPromptsFromFilesAndPipes) {
  const TemporaryFolder files;
  const std::string text = words_of(recorded_ids("prompt_ids")), file = (files / "prompt").string();
  write_file(file, text);
  const std::string model = folder().string();
  EXPECT_EQ(run_rlx(fmt::format("run {} -n 9 -f {}", model, file)).out, recorded_answer(9) + "\n");
  EXPECT_EQ(run_rlx(fmt::format("run {} -n 9 --file - < {}", model, file)).out, recorded_answer(9) + "\n");
  EXPECT_EQ(run_rlx(fmt::format("run {} -n 9 < {}", model, file)).out, recorded_answer(9) + "\n");
  EXPECT_EQ(run_rlx(fmt::format("run {} '{}' -n 9", model, text)).out, recorded_answer(9) + "\n");
  EXPECT_EQ(run_rlx(fmt::format("run {} -p x -f {}", model, file)).status, 2);
  for (const char* option : {"", "-p "})
    EXPECT_EQ(run_rlx(fmt::format("run {} {}'a\xFF'", model, option)).err, "rlx: the prompt: is not UTF-8: byte \\xff at offset 1\n")
        << option;
  EXPECT_EQ(run_rlx(fmt::format("run {} < /dev/null", model)).err, "rlx: there are no tokens to continue\n");
  EXPECT_NE(run_rlx(fmt::format("run {} -f {}", model, (folder() / "model.safetensors").string())).err.find("is not UTF-8"),
            std::string::npos);
}

TEST_F(RunCommand, SaysBeforeItsWorkThatItCannotBeKept) {
  const TemporaryFolder files;
  for (const std::string& missing :
       {(files / "no/cache").string(), std::string("/proc/x")}) {  // root may write to /proc, but make no files
    const CommandResult result = run("-n 5 --cache " + missing);
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, fmt::format("rlx: {}: cannot create: No such file or directory\n", missing));
  }
}

TEST_F(RunCommand, EndsWhereNobodyReads) {
  const CommandResult result = run("-n 5 > /dev/full");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "rlx: standard output: No space left on device\n");  // and no times: nothing more was computed
}

TEST_F(RunCommand, SaysWhichKindOfFileIsNeeded) {
  const TemporaryFolder files;
  write_file(files / "picture.png", "\x89PNG\r\n\x1a\n and so on");
  const std::string picture = (files / "picture.png").string(), missing = (files / "missing").string();
  EXPECT_EQ(run_rlx(fmt::format("run {} -p x", picture)).err,
            fmt::format("rlx: {}: neither a GGUF file, a .safetensors file nor a folder with such files\n", picture));
  EXPECT_EQ(run_rlx(fmt::format("tokenize --model {} x", picture)).err,
            fmt::format("rlx: {}: neither a GGUF file, tokenizer.json, tokenizer.model nor tekken.json\n", picture));
  EXPECT_NE(run_rlx(fmt::format("tokenize --model {} --ids 3,999999", folder().string())).err.find("no token has the id 999999"),
            std::string::npos);
  EXPECT_EQ(run_rlx(fmt::format("verify {}", missing)).err, fmt::format("rlx: {}: No such file or directory\n", missing));
  EXPECT_NE(run_rlx(fmt::format("run {}/config.json -p x", folder().string())).err.find("folder is named without a file"),
            std::string::npos);
}

TEST_F(RunCommand, GuessesAndSaysHowManyWereRight) {
  const CommandResult result = run(fmt::format("-n 9 --guesses 4 --draft {}", folder().string()));
  EXPECT_EQ(result.out, recorded_answer(9) + "\n");
  EXPECT_NE(result.err.find("6 of 6 guesses were right"), std::string::npos) << result.err;
  EXPECT_EQ(run("--lookup --draft x").status, 2);
  const TinyLanguageModel bytes(tokenizer_of_bytes());
  const CommandResult other = run(fmt::format("-n 9 --draft {}", bytes.path().string()));
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("the model's is ' w0' (needed: the same tokens)"), std::string::npos) << other.err;
}

TEST_F(RunCommand, GoesOnWhereTheContextIsFull) {
  const CommandResult full = run("-n 30 --context 12"), shifted = run("-n 30 --context 12 --context-shift --keep 2");
  EXPECT_NE(full.err.find("the context of 12 tokens is full"), std::string::npos) << full.err;
  EXPECT_EQ(std::count(shifted.out.begin(), shifted.out.end(), 'w'), 30) << shifted.out;
  EXPECT_EQ(shifted.out.substr(0, full.out.size() - 1), full.out.substr(0, full.out.size() - 1));
  EXPECT_EQ(run("--keep 2").status, 2);
}

TEST_F(RunCommand, NamesAContextThatNoMemoryHolds) {
  constexpr std::int64_t bytes_asked_for = std::int64_t{1} << 37;  // of the keys of a layer
  if (sysconf(_SC_PHYS_PAGES) >= bytes_asked_for / sysconf(_SC_PAGESIZE)) GTEST_SKIP() << "this machine has memory for the largest context";
  const CommandResult result = run("--context 1073741824 --cache-type f32");
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("a context of 1073741824 tokens: array: no memory"), std::string::npos) << result.err;
}

TEST_F(RunCommand, RefusesAbsurdSampling) {
  const std::pair<const char*, const char*> cases[] = {
      {"--top-p 3", "top_p is 3 (allowed: above 0, at most 1)"},
      {"--temperature -1", "temperature is -1 (allowed: 0..1000000)"},
      {"--temperature nan", "temperature is nan (allowed: 0..1000000)"},
      {"--min-p 2", "min_p is 2 (allowed: 0..1)"},
      {"--typical-p 0", "typical_p is 0 (allowed: above 0, at most 1)"},
      {"--top-k -4", "top_k is -4 (allowed: at least 0)"},
      {"--xtc-threshold 9", "xtc_threshold is 9 (allowed: 0..1)"},
      {"--repeat-penalty 0", "repetition_penalty is 0 (allowed: above 0, at most 1000000)"},
      {"--dry-base 0", "dry_base is 0 (allowed: 1..1000000)"},
      {"--mirostat 3", "mirostat is 3 (allowed: 0..2)"},
      {"--mirostat-eta 0", "mirostat_eta is 0 (allowed: above 0, at most 1000000)"},
      {"--logit-bias 5", "--logit-bias: '5' (allowed: the id of a token, a colon and a number, as 15043:-2.5 or 15043:-inf)"},
      {"--logit-bias 256:1", "logit_bias: token 256 is not in the vocabulary (allowed: 0..255)"},
  };
  for (const auto& [arguments, part] : cases) {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.status, 1) << arguments;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(line_count(result.err), 1) << result.err;
  }
}

}  // namespace
}  // namespace rlx::test
