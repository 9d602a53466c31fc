// Language models as packages of CoreML, with their caches as states: the logits of each run, and so the tokens, are those of the CPU.
#include "rlx/model.h"

#include <algorithm>

#include "coreml/evaluator.h"
#include "fixture.h"
#include "formats/temporary_folder.h"
#include "models/random_llama.h"
#include "quant/block_parts.h"
#include "rlx/export.h"
#include "rlx/io.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t context = 16, chunk = 6;
const std::vector<std::int32_t> prompt{3, 17, 5, 60, 9};
constexpr RandomLlama sizes{.layers = 1, .hidden = 256, .heads = 4, .kv_heads = 2, .ffn = 256, .vocabulary = 64, .context = context};

/// What the CPU gives for the prompt and for each of the tokens that it chooses.
struct Answer {
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<float>> logits;
};

std::int32_t likeliest(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
}

Answer answer_of(const fs::path& path) {
  Model model = Model::open(path, Session(Device::cpu(), {.round_activations = false}), {.context = context, .cache = CacheType::f16});
  Answer answer;
  answer.logits.push_back(model.append(prompt, 1));
  for (int i = 0; i < 3; ++i) {
    answer.tokens.push_back(likeliest(answer.logits.back()));
    answer.logits.push_back(model.append(std::span(&answer.tokens.back(), 1), 1));
  }
  return answer;
}

/// One run of a package: these tokens behind `past`, filled up to the function's size.
void write_run(const fs::path& folder, std::span<const std::int32_t> tokens, std::int64_t past, std::int64_t size,
               std::string_view function) {
  fs::create_directories(folder);
  Array ids(i32, {1, size}), held(i32, {1}), rows(i32, {1, 1});
  for (std::size_t i = 0; i < tokens.size(); ++i) ids.set_int(static_cast<std::int64_t>(i), tokens[i]);
  held.set_int(0, past);
  rows.set_int(0, std::ssize(tokens) - 1);
  save_npy(folder / "input_ids.npy", ids);
  save_npy(folder / "past.npy", held);
  save_npy(folder / "rows.npy", rows);
  Array mask(i32, {1, 1, size});  // of recurrent layers
  for (std::int64_t i = 0; i < std::ssize(tokens); ++i) mask.set_int(i, 1);
  save_npy(folder / "mask.npy", mask);
  write_file(folder / "function.txt", function);
}

struct Exported {
  std::string name;
  fs::path model;
  CoreMlOptions options = {};
  double bound = 2e-4;
  bool any_length = false;  // one function for all numbers of tokens
};

Answer export_model(const Exported& exported, const fs::path& folder) {
  CoreMlOptions options = exported.options;
  const SavedGraph saved = model_graph(exported.model, {.context = context, .chunk = chunk});
  options.sizes = {{"R", 1}};
  if (!exported.any_length) options.functions = {{"prompt", {{"S", chunk}}}, {"token", {{"S", 1}}}};
  if (saved.graph.symbols().contains("L")) {
    options.sizes.emplace("C", 1);
    for (CoreMlFunction& function : options.functions) function.sizes.emplace("L", function.sizes.at("S"));
  }
  export_coreml(folder / "model.mlpackage", saved, options);
  Answer answer = answer_of(exported.model);
  const auto function = [&](const char* name) { return exported.any_length ? "main" : name; };
  write_run(folder / "in", prompt, 0, exported.any_length ? std::ssize(prompt) : chunk, function("prompt"));
  for (std::size_t i = 0; i < answer.tokens.size(); ++i)
    write_run(folder / fmt::format("in_{}", i + 1), std::span(&answer.tokens[i], 1), std::ssize(prompt) + static_cast<std::int64_t>(i), 1,
              function("token"));
  return answer;
}

void expect_answer(const Exported& exported, const Answer& answer, const fs::path& folder) {
  SCOPED_TRACE(exported.name);
  ASSERT_FALSE(fs::exists(folder / "error.txt")) << read_text(folder / "error.txt");
  for (std::size_t run = 0; run < answer.logits.size(); ++run) {
    const std::vector<float> seen = load_npy(folder / (run == 0 ? "out" : fmt::format("out_{}", run)) / "logits.npy").floats();
    const std::vector<float>& wanted = answer.logits[run];
    ASSERT_EQ(seen.size(), wanted.size());
    float largest = 0, error = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      largest = std::max(largest, std::abs(wanted[i]));
      error = std::max(error, std::abs(seen[i] - wanted[i]));
    }
    EXPECT_LE(error, exported.bound * static_cast<double>(largest)) << "run " << run;
    if (run < answer.tokens.size()) {
      EXPECT_EQ(likeliest(seen), answer.tokens[run]) << "run " << run;
    }
  }
}

void expect_same_answers(const std::vector<Exported>& all, const fs::path& folder) {
  std::vector<Answer> answers;
  for (const Exported& one : all) answers.push_back(export_model(one, folder / one.name));
  run_packages(folder);
  for (std::size_t i = 0; i < all.size(); ++i) expect_answer(all[i], answers[i], folder / all[i].name);
}

/// States are f16 in a package, which those of recurrent layers are not on the CPU.
TEST(CoreMlLanguageModels, Families) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const TemporaryFolder folder;
  std::vector<Exported> all;
  for (const char* name : {"gpt2", "qwen3", "gemma2", "mamba"})
    all.push_back({name, fixture("hf") / name, {}, std::string_view(name) == "mamba" ? 1e-2 : 2e-4});
  expect_same_answers(all, folder.path());
}

TEST(CoreMlLanguageModels, PromptsOfAnyLength) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const TemporaryFolder folder;
  std::vector<Exported> all;
  for (const char* name : {"gpt2", "qwen3", "gemma2"}) all.push_back({.name = name, .model = fixture("hf") / name, .any_length = true});
  expect_same_answers(all, folder.path());
}

TEST(CoreMlLanguageModels, EveryTypeOfBlocks) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const TemporaryFolder folder;
  std::vector<Exported> all;
  for (const BlockFormat& format : block_formats()) {
    if (format.values == 1) continue;
    const std::string type(format.name);
    const fs::path model = folder / (type + ".gguf");
    write_random_llama(model, type, sizes);
    all.push_back({type, model});
    all.push_back({type + "_f16", model, {.precision = Precision::f16}, 2e-2});
    all.push_back({type + "_26", model, {.minimum_target = 26}});
  }
  for (const char* type : {"F32", "F16", "BF16"}) {
    write_random_llama(folder / (std::string(type) + ".gguf"), type, sizes);
    all.push_back({type, folder / (std::string(type) + ".gguf")});
  }
  expect_same_answers(all, folder.path());
}

}  // namespace
}  // namespace rlx::test
