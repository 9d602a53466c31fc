// Adapters of the folder lora, recorded by scripts/lora_adapters.py, and others that are made here.
#include "models/weights/adapters.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fixture.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "models/conversion/model_source.h"
#include "models/conversion/quantize_model.h"
#include "models/recorded_adapter.h"
#include "models/weights/decoder_files.h"
#include "rlx/batch.h"
#include "rlx/io.h"
#include "rlx/model.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;
using test::TemporaryFolder;
using test::write_text;

using test::expect_recorded;
using test::Ids;
using test::ids_of;
using test::largest_difference;
using test::logits_of;

Model open(const std::filesystem::path& model, std::vector<Adapter> adapters = {}, bool claims = true) {
  return test::open_adapted(model, std::move(adapters), claims);
}

struct AdapterCase {
  const char *name, *adapter, *base;
};

class RecordedAdapter : public testing::TestWithParam<AdapterCase> {};

TEST_P(RecordedAdapter, GivesTheRecordedLogitsAndTokens) {
  expect_recorded(open(fixture(GetParam().base), {{fixture("lora") / GetParam().adapter}}), GetParam().name);
}

TEST(Adapters, GiveTheSameWithoutClaims) {
  expect_recorded(open(fixture("hf/llama"), {{fixture("lora/llama")}}, false), "llama");
  expect_recorded(open(fixture("hf/mixtral"), {{fixture("lora/mixtral")}}, false), "mixtral");
}

INSTANTIATE_TEST_SUITE_P(Folders, RecordedAdapter,
                         testing::Values(AdapterCase{"llama", "llama", "hf/llama"}, AdapterCase{"llama-head", "llama-head", "hf/llama"},
                                         AdapterCase{"llama-tied", "llama-tied", "hf/llama-tied"}, AdapterCase{"gpt2", "gpt2", "hf/gpt2"},
                                         AdapterCase{"phi3", "phi3", "hf/phi3"}, AdapterCase{"gemma3", "gemma3", "hf/gemma3"},
                                         AdapterCase{"falcon-new", "falcon-new", "hf_more/falcon-new"},
                                         AdapterCase{"qwen3_next", "qwen3_next", "hf/qwen3_next"},
                                         AdapterCase{"mamba", "mamba", "hf/mamba"},
                                         AdapterCase{"deepseek_v3", "deepseek_v3", "hf_more/deepseek_v3"},
                                         AdapterCase{"mixtral", "mixtral", "hf/mixtral"}));
INSTANTIATE_TEST_SUITE_P(
    FoldersOnGgufModels, RecordedAdapter,
    testing::Values(AdapterCase{"llama", "llama", "gguf_models/llama.gguf"},
                    AdapterCase{"llama-head", "llama-head", "gguf_models/llama.gguf"}, AdapterCase{"gpt2", "gpt2", "gguf_models/gpt2.gguf"},
                    AdapterCase{"phi3", "phi3", "gguf_models/phi3.gguf"}, AdapterCase{"gemma3", "gemma3", "gguf_models/gemma3.gguf"},
                    AdapterCase{"mamba", "mamba", "gguf_models/mamba.gguf"}, AdapterCase{"mixtral", "mixtral", "gguf_models/mixtral.gguf"},
                    AdapterCase{"falcon-new", "falcon-new", "gguf_models/falcon-new.gguf"},
                    AdapterCase{"qwen3_next", "qwen3_next", "gguf_models/qwen3_next.gguf"}));
INSTANTIATE_TEST_SUITE_P(GgufFilesOnFolders, RecordedAdapter,
                         testing::Values(AdapterCase{"llama", "llama.gguf", "hf/llama"},
                                         AdapterCase{"llama-head", "llama-head.gguf", "hf/llama"},
                                         AdapterCase{"mixtral", "mixtral.gguf", "hf/mixtral"}));
INSTANTIATE_TEST_SUITE_P(GgufFiles, RecordedAdapter,
                         testing::Values(AdapterCase{"llama", "llama.gguf", "gguf_models/llama.gguf"},
                                         AdapterCase{"llama-head", "llama-head.gguf", "gguf_models/llama.gguf"},
                                         AdapterCase{"mixtral", "mixtral.gguf", "gguf_models/mixtral.gguf"}));

const Ids asked{5, 42, 79, 116, 3, 200, 17, 88};

Array some_numbers(std::vector<std::int64_t> shape, DType dtype, double phase) {
  Array array(dtype, std::move(shape));
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, 0.3 * std::sin(phase + 1.7 * static_cast<double>(i)));
  return array;
}

constexpr const char* q_proj = "model.layers.0.self_attn.q_proj";
std::string factor_name(char which, std::string_view module = q_proj) {
  return fmt::format("base_model.model.{}.lora_{}.weight", module, which);
}

/// A folder with an adapter of rank 2 of one matrix (64, 64) of the Llama of the fixtures.
class AdapterOfOneMatrix {
 public:
  explicit AdapterOfOneMatrix(DType dtype = f32, double phase = 0)
      : factors_{{factor_name('A'), some_numbers({2, 64}, dtype, phase)}, {factor_name('B'), some_numbers({64, 2}, dtype, phase + 1)}} {}

  /// Writes the folder with changes of the config; a null removes a field.
  std::filesystem::path written(const std::string& changes = "{}") const {
    json::Value config = json::parse(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 3, "target_modules": ["q_proj"]})", "config");
    config.update(json::parse(changes, "changes"));
    write_text(folder_ / "adapter_config.json", config.dump());
    save_safetensors(folder_ / "adapter_model.safetensors", factors_);
    return folder_.path();
  }
  NamedArrays& factors() { return factors_; }

 private:
  TemporaryFolder folder_;
  NamedArrays factors_;
};

/// The Llama of the fixtures with scale * B A added to the matrix.
void write_merged(const std::filesystem::path& target, const std::vector<std::pair<NamedArrays, double>>& changes) {
  NamedArrays weights = load_safetensors(fixture("hf/llama/model.safetensors")).arrays;
  const std::string name = fmt::format("{}.weight", q_proj);
  Array merged(f32, {64, 64});
  for (std::int64_t row = 0; row < 64; ++row) {
    for (std::int64_t column = 0; column < 64; ++column) {
      double value = weights.at(name).get_double(row * 64 + column);
      for (const auto& [factors, scale] : changes) {
        const Array &a = factors.at(factor_name('A')), &b = factors.at(factor_name('B'));
        for (std::int64_t r = 0; r < 2; ++r) value += scale * b.get_double(row * 2 + r) * a.get_double(r * 64 + column);
      }
      merged.set_double(row * 64 + column, value);
    }
  }
  weights.at(name) = merged;
  save_safetensors(target / "model.safetensors", weights);
  std::filesystem::copy(fixture("hf/llama/config.json"), target / "config.json");
}

// Of logits of up to 10: sums of f32 in another order, ten times their distance from f64, which the fixtures put at 1e-5.
constexpr double rounding_of_logits = 1e-4;

TEST(Adapters, OfSeveralFilesAddUpWithTheirScales) {
  AdapterOfOneMatrix first, second(bf16, 3);
  const TemporaryFolder folder;
  write_merged(folder.path(), {{first.factors(), 1.5 * 0.5}, {second.factors(), 1.5 * -2}});
  const auto seen = logits_of(open(fixture("hf/llama"), {{first.written(), 0.5}, {second.written(), -2}}), asked);
  EXPECT_LE(largest_difference(seen, logits_of(open(folder.path()), asked)), rounding_of_logits);
  EXPECT_GT(largest_difference(seen, logits_of(open(fixture("hf/llama")), asked)), 1000 * rounding_of_logits);
}

TEST(Adapters, InBf16ArePartOfTheGraphAsTheyAreStored) {
  const AdapterOfOneMatrix adapter(bf16);
  AdapterOfOneMatrix wide;
  for (auto& [name, array] : wide.factors())
    for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, AdapterOfOneMatrix(bf16).factors().at(name).get_double(i));
  const Adapter narrow{adapter.written()};
  const DecoderFiles files = DecoderFiles::open(fixture("hf/llama"), std::span(&narrow, 1));
  EXPECT_EQ(files.adapters.forms()("layers.0.attention.q.weight", MatrixUse::product, 0).dtype, bf16);
  EXPECT_LE(largest_difference(logits_of(open(fixture("hf/llama"), {narrow}), asked),
                               logits_of(open(fixture("hf/llama"), {{wide.written()}}), asked)),
            rounding_of_logits);
}

TEST(Adapters, OfScaleZeroChangeNothing) {
  EXPECT_EQ(logits_of(open(fixture("hf/llama"), {{fixture("lora/llama"), 0}}), asked), logits_of(open(fixture("hf/llama")), asked));
}

// A product with blocks rounds what it multiplies to 8 bits, which the same model with its blocks decoded does not: that much both may
// differ by, with the adapter as without, as what it adds is not rounded.
TEST(Adapters, ChangeQuantizedModelsWhoseBlocksStay) {
  const TemporaryFolder folder;
  const auto blocks = folder / "blocks.gguf", decoded = folder / "decoded.gguf";
  quantize_model(source_of(GgufFile::open(fixture("gguf_models/llama.gguf"))), blocks, &find_type_mix("Q8_0"), {});
  quantize_model(source_of(GgufFile::open(blocks)), decoded, &find_type_mix("F32"), {});
  for (const char* name : {"lora/llama", "lora/llama.gguf"}) {
    const Adapter adapter{fixture(name)};
    const DecoderFiles files = DecoderFiles::open(blocks, std::span(&adapter, 1));
    EXPECT_EQ(stored_types(files.checkpoint, files.names)("layers.0.attention.q.weight"), "Q8_0");
    const auto plain = logits_of(open(blocks), asked), exact = logits_of(open(decoded), asked);
    const auto seen = logits_of(open(blocks, {adapter}), asked), wanted = logits_of(open(decoded, {adapter}), asked);
    EXPECT_LE(largest_difference(seen, wanted), 3 * largest_difference(plain, exact));
    EXPECT_GT(largest_difference(seen, plain), 30 * largest_difference(plain, exact));
  }
}

TEST(Adapters, AnswerInBatchesAsAlone) {
  const NamedArrays recorded = load_safetensors(fixture("lora/llama/expected.safetensors")).arrays;
  const Ids prompt = ids_of(recorded.at("prompt_ids")), greedy = ids_of(recorded.at("greedy_ids"));
  Batch batch =
      Batch::open(fixture("hf/llama"), Session(), {.context = 40, .adapters = {{fixture("lora/llama")}}, .cache = CacheType::f32});
  const std::vector<Ids> prompts(2, prompt);
  for (const Answer& answer : batch.generate(prompts, {.max_tokens = static_cast<std::int64_t>(greedy.size() - prompt.size())}))
    EXPECT_TRUE(std::ranges::equal(answer.ids, std::span(greedy).subspan(prompt.size())));
}

TEST(Adapters, MakeCachesOfTheirOwn) {
  const TemporaryFolder folder;
  Model adapted = open(fixture("hf/llama"), {{fixture("lora/llama")}}), plain = open(fixture("hf/llama")),
        stronger = open(fixture("hf/llama"), {{fixture("lora/llama"), 2}});
  adapted.append(asked);
  adapted.save_cache(folder / "cache");
  for (Model* other : {&plain, &stronger})
    EXPECT_NE(error_of([&] { other->load_cache(folder / "cache"); }).find("is the cache of another model"), std::string::npos);
}

std::string error_with(const std::filesystem::path& adapter, std::string_view model = "hf/llama") {
  const Adapter one{adapter};
  return error_of([&] { open(fixture(model), {one}); });
}

TEST(WrongAdapters, AreRefusedByTheFieldOfTheirConfig) {
  const AdapterOfOneMatrix adapter;
  const auto error = [&](const std::string& changes) {
    const auto folder = adapter.written(changes);
    const std::string text = error_with(folder), file = fmt::format("{}: ", (folder / "adapter_config.json").string());
    EXPECT_EQ(text.substr(0, file.size()), file);
    return text.substr(std::min(text.size(), file.size()));
  };
  EXPECT_EQ(error(R"({"use_dora": true})"), "use_dora: DoRA, which rescales the model's own matrices is not supported (allowed: none)");
  EXPECT_EQ(error(R"({"modules_to_save": ["lm_head"]})"),
            "modules_to_save: modules that are replaced as a whole is not supported (allowed: none)");
  for (const auto& [field, change] : {std::pair{"peft_type", R"({"peft_type": "IA3"})"},
                                      {"bias", R"({"bias": "all"})"},
                                      {"lora_bias", R"({"lora_bias": true})"},
                                      {"target_parameters", R"({"target_parameters": ["mlp.experts"]})"},
                                      {"layer_replication", R"({"layer_replication": [[0, 2]]})"},
                                      {"trainable_token_indices", R"({"trainable_token_indices": {"embed_tokens": [1]}})"},
                                      {"init_lora_weights", R"({"init_lora_weights": "pissa_niter_4"})"},
                                      {"r", R"({"r": 0})"},
                                      {"r", R"({"r": null})"},
                                      {"lora_alpha", R"({"lora_alpha": "much"})"},
                                      {"rank_pattern", R"({"rank_pattern": {"(q_proj": 2}})"},
                                      {"rank_pattern", R"({"rank_pattern": [2]})"},
                                      {"alpha_pattern", R"({"alpha_pattern": {"q_proj": []}})"}})
    EXPECT_EQ(error(change).substr(0, std::string_view(field).size()), field) << change;
  EXPECT_NE(error_with(adapter.written(R"({"r": 4})")).find("has rank 2, adapter_config.json says 4"), std::string::npos);
}

TEST(WrongAdapters, AreRefusedByAllTensorsThatFitNothing) {
  AdapterOfOneMatrix adapter;
  for (const char* module : {"model.layers.0.self_attn.z_proj", "model.layers.9.self_attn.q_proj"})
    for (const char which : {'A', 'B'}) adapter.factors().emplace(factor_name(which, module), adapter.factors().at(factor_name(which)));
  adapter.factors().at(factor_name('A')) = some_numbers({2, 48}, f32, 0);
  const auto folder = adapter.written();
  EXPECT_EQ(error_with(folder),
            fmt::format("{}: the adapter does not fit: the model has no product with 'model.layers.0.self_attn.z_proj.weight', "
                        "'model.layers.9.self_attn.q_proj.weight'; 'model.layers.0.self_attn.q_proj.weight' changes a matrix (64, 48), the "
                        "model's is (64, 64)",
                        (folder / "adapter_model.safetensors").string()));
}

TEST(WrongAdapters, AreRefusedByFactorsThatAreMissingOrDisagree) {
  const auto error = [](const std::function<void(NamedArrays&)>& change) {
    AdapterOfOneMatrix adapter;
    change(adapter.factors());
    return error_with(adapter.written());
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(error([](NamedArrays& f) { f.erase(factor_name('A')); }), "one of the two matrices is missing for 'model.layers.0.self"));
  EXPECT_TRUE(has(error([](NamedArrays& f) { f.at(factor_name('A')) = Array(f32, {3, 64}); }), "do not agree for "));
  EXPECT_TRUE(has(error([](NamedArrays& f) { f.at(factor_name('A')) = Array(f32, {64}); }), "do not agree for "));
  EXPECT_TRUE(has(error([](NamedArrays& f) { f.at(factor_name('B')) = Array(i32, {64, 2}); }), "do not agree for "));
  EXPECT_TRUE(has(error([](NamedArrays& f) { f.at(factor_name('A')) = Array(f32, {0, 64}), f.at(factor_name('B')) = Array(f32, {64, 0}); }),
                  "do not agree for "));
  EXPECT_TRUE(has(error([](NamedArrays& f) { f.emplace("base_model.model.lm_head.weight", Array(f32, {2, 2})); }),
                  "no part of a low-rank change: 'base_model.model.lm_head.weight'"));
  EXPECT_TRUE(has(error([](NamedArrays& f) { f.clear(); }), "changes nothing"));
}

TEST(WrongAdapters, AreRefusedAsFilesOfAnotherKind) {
  const TemporaryFolder empty;
  EXPECT_NE(error_with(empty / "none").find("no adapter (a folder of PEFT's or a GGUF file is needed)"), std::string::npos);
  EXPECT_NE(error_with(empty.path()).find("no adapter_config.json in this folder"), std::string::npos);
  EXPECT_NE(error_with(fixture("gguf_models/llama.gguf"), "gguf_models/llama.gguf").find("(needed for an adapter: 'adapter')"),
            std::string::npos);
  for (const char* model : {"gguf_models/gpt2.gguf", "hf/gpt2"})
    EXPECT_NE(error_with(fixture("lora/llama.gguf"), model).find("general.architecture is 'llama', the model's is 'gpt2'"),
              std::string::npos);
  EXPECT_NE(error_with(fixture("lora/gpt2"), "hf/llama").find("the adapter does not fit"), std::string::npos);
  EXPECT_NE(error_with(fixture("lora/deepseek_v3"), "gguf_models/deepseek_v3.gguf").find("kv_b_proj.weight' transposed, head by head"),
            std::string::npos);
  for (const char* adapter : {"lora/llama", "lora/llama.gguf"})
    EXPECT_NE(error_of([&] { open(fixture(adapter)); }).find("is an adapter; name the model that it changes"), std::string::npos);
  EXPECT_NE(error_of([&] { open(fixture("hf/llama"), {{fixture("lora/llama"), NAN}}); }).find("allowed: finite numbers"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx
