// A language model as one side of bench/llama_peers.py: says in one line of JSON that it is ready, and answers "WORD NUMBER [FILE]":
//
//     fill N         makes the cache hold N tokens, behind which the others begin, reading what is missing; answers with how many there are
//     prompt N       seconds of N tokens together
//     decode N       seconds of N tokens one by one
//     greedy N FILE  saves the logits of N tokens, each the most likely one behind what was filled and those before, as an .npy file of
//                    (N, vocab_size)
//     limits MS      what the machine reaches in so many milliseconds each: bytes read per second, operations per second of each kind
#include <cstdio>
#include <iostream>
#include <optional>
#include <sstream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backends/cpu/peaks/peaks.h"
#include "base/thread_pool.h"
#include "cases/cases.h"
#include "models/run/caches/cached_decoder.h"
#include "rlx/io.h"
#include "rlx/model.h"
#include "serve.h"

namespace {

using namespace rlx;

struct Options {
  std::string model;
  std::int64_t context = 2048;
  int threads = 2;
  std::optional<Precision> precision;  // none: what is usual for the model
  bool exact = false;
};

/// Any will do; the same as bench/serve_llama.py takes.
std::vector<std::int32_t> some_tokens(std::int64_t count, std::int64_t vocab_size) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>((i * 7919 + 11) % vocab_size));
  return ids;
}

Session open_session(const Options& options) {
  SessionOptions session;  // with its cache of kernels, as the commands have it
  session.threads = options.threads;
  session.precision = options.precision ? *options.precision : usual_precision(options.model);
  return Session(Device::cpu(), session);
}

class Answers {
 public:
  explicit Answers(const Options& options)
      : threads_(options.threads),
        session_(open_session(options)),
        model_(Model::open(options.model, session_,
                           {.context = options.context, .cache = options.exact ? CacheType::f32 : CacheType::usual})) {}

  std::string answer(const std::string& word, std::int64_t number, const std::string& file) {
    if (word == "limits") return limits(static_cast<double>(number) / 1e3).dump();
    if (word == "greedy") return greedy(number, file), "saved";
    if (word == "fill") return fill(number), fmt::format("{}", depth_);
    const auto ids = some_tokens(number, model_.vocab_size());
    model_.rewind(depth_);
    const auto begin = bench::Clock::now();
    if (word == "prompt") model_.append(ids);
    else
      for (const std::int32_t& id : ids) model_.append(std::span(&id, 1));
    return fmt::format("{:.9f}", bench::seconds_since(begin));
  }

 private:
  void fill(std::int64_t count) {
    const auto held = static_cast<std::int64_t>(model_.ids().size());
    if (count <= held) model_.rewind(count);
    else model_.append(some_tokens(count - held, model_.vocab_size()));
    depth_ = count;
  }

  void greedy(std::int64_t count, const std::string& file) {
    Array all(f32, {count, model_.vocab_size()});
    auto to = all.mutable_values<float>().begin();
    model_.rewind(0);
    std::vector<float> logits = model_.append(some_tokens(depth_, model_.vocab_size()));
    for (std::int64_t i = 0; i < count; ++i) {
      to = std::copy(logits.begin(), logits.end(), to);
      const std::int32_t id = greedy_choice(logits);
      if (i + 1 < count) logits = model_.append(std::span(&id, 1));
    }
    save_npy(file, all);
  }

  nlohmann::json limits(double budget) const {
    ThreadPool pool(threads_);
    nlohmann::json found{{"read", cpu::read_bandwidth(pool, cpu::bytes_beyond_caches(threads_), budget)}};
    for (const char* operands : {"f32", "bf16", "int8"}) found[operands] = cpu::compute_peak(pool, operands, budget);
    return found;
  }

  int threads_;
  Session session_;
  Model model_;
  std::int64_t depth_ = 0;
};

void serve(const Options& options) {
  const auto begin = bench::Clock::now();
  Answers answers(options);
  fmt::print("{}\n", nlohmann::json{{"version", "this build"}, {"open_s", bench::seconds_since(begin)}}.dump());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word, file;
    std::int64_t number = 0;
    words >> word >> number >> file;
    fmt::print("{}\n", answers.answer(word, number, file));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times a language model");
  Options options;
  app.add_option("--model", options.model, "GGUF file or folder")->required();
  app.add_option("--context", options.context, "tokens that the cache holds")->check(CLI::Range(1, 1 << 20));
  app.add_option("--threads", options.threads, "threads");
  app.add_flag("--exact", options.exact, "keys and values in f32");
  app.add_option_function<std::string>(
         "--precision", [&](const std::string& word) { options.precision = precision_named(word); },
         "of matrix products; else what is usual for the model")
      ->check(CLI::IsMember(bench::precision_words()));
  return bench::run_command(app, argc, argv, [&] { serve(options); });
}
