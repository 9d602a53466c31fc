#include "models/layers/encoder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/files/file_writer.h"
#include "fixture.h"
#include "formats/temporary_folder.h"
#include "models/config/model_folder.h"
#include "models/conversion/folder_source.h"
#include "models/conversion/quantize_model.h"
#include "models/families/decoder_family.h"
#include "models/layers/t5.h"
#include "models/logits.h"
#include "models/run/caches/cached_decoder.h"
#include "models/run/recorded_run.h"
#include "models/weights/decoder_files.h"
#include "models/weights/t5_files.h"
#include "rlx/io.h"
#include "rlx/session.h"

namespace rlx {
namespace decoder_test {

using test::error_of;
using test::f32_distance;
using test::fixture;
using test::kernels_of;
using test::largest_difference;
using test::session;

DecoderConfig config_of(const std::filesystem::path& file, const std::string& changes = "{}") {
  json::Value config = json::read_file(file, {.allow_non_finite = true});
  config.update(json::parse(changes, "changes"));
  return DecoderFamily::find(config.at("model_type").get<std::string>())->read(JsonField(config, "config.json"));
}

/// A family's fixture, ready to run.
struct Loaded {
  DecoderFiles files;
  CachedDecoder decoder;

  explicit Loaded(const std::string& name, CachedDecoder::Options options)
      : files(DecoderFiles::open(fixture(name))), decoder(session(), files, options) {}
};

std::vector<std::int32_t> prompt_of(std::int64_t vocabulary, std::size_t length) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < length; ++i) ids.push_back(static_cast<std::int32_t>((i * 37 + 5) % static_cast<std::size_t>(vocabulary)));
  return ids;
}

std::string name_of_fixture(const testing::TestParamInfo<std::string>& each) {
  std::string name = each.param;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '/'; }, '_');
  return name;
}

class DecoderFixture : public testing::TestWithParam<std::string> {};

TEST_P(DecoderFixture, LogitsAndGreedyTokensAreTheRecordedOnes) {
  const auto verified = verify_folder(fixture("hf/" + GetParam()), session());
  ASSERT_EQ(verified.size(), 3u);
  for (const VerifiedTensor& t : verified) EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

// Sums over chunks of a prompt run in another order.
void expect_same_logits_in_chunks(const std::string& name) {
  Loaded whole(name, {.context = 40}), chunked(name, {.context = 40, .chunk = 3});
  const auto prompt = prompt_of(whole.files.config.vocab_size, 14);
  const auto expected = whole.decoder.append(prompt);
  EXPECT_LE(largest_difference(chunked.decoder.append(prompt), expected), f32_distance(name));
  chunked.decoder.rewind(0);
  std::vector<float> last;
  for (std::int32_t id : prompt) last = chunked.decoder.append(std::span(&id, 1));
  EXPECT_LE(largest_difference(last, expected), f32_distance(name));
}

TEST_P(DecoderFixture, APromptInChunksGivesTheSameLogits) { expect_same_logits_in_chunks("hf/" + GetParam()); }

INSTANTIATE_TEST_SUITE_P(Families, DecoderFixture,
                         testing::Values("llama", "llama-tied", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3", "phi3-longrope",
                                         "gpt2", "granite", "olmo2", "mixtral", "qwen3_next", "mamba"),
                         name_of_fixture);

/// Families that two versions of transformers spell in two ways: all but GPT-2 and Mamba.
class TwoSpellings : public testing::TestWithParam<std::string> {};

TEST_P(TwoSpellings, OfTheConfigMeanTheSameGraph) {
  const DecoderGraphOptions options{.sequences = 1, .capacity = 32, .chunk = 8};
  EXPECT_TRUE(structurally_equal(decoder_graph(config_of(fixture("hf/" + GetParam() + "/config.json")), options),
                                 decoder_graph(config_of(fixture("hf/" + GetParam() + "/config_v4.json")), options)));
}

INSTANTIATE_TEST_SUITE_P(Families, TwoSpellings,
                         testing::Values("llama", "llama-tied", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3", "phi3-longrope",
                                         "granite", "olmo2", "mixtral", "qwen3_next"),
                         name_of_fixture);

class MoreDecoders : public testing::TestWithParam<std::string> {};

// Recorded by scripts/hf_models.py.
TEST_P(MoreDecoders, LogitsAndGreedyTokensAreTheRecordedOnes) {
  const auto verified = verify_folder(fixture("hf_more/" + GetParam()), session());
  ASSERT_EQ(verified.size(), 3u);
  for (const VerifiedTensor& t : verified) EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

TEST_P(MoreDecoders, APromptInChunksGivesTheSameLogits) { expect_same_logits_in_chunks("hf_more/" + GetParam()); }

/// The models of hf_more that continue texts; the others are encoders.
std::vector<std::string> recorded_decoders() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture("hf_more")))
    if (load_safetensors(entry.path() / "expected.safetensors").arrays.contains("greedy_ids")) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Families, MoreDecoders, testing::ValuesIn(recorded_decoders()), name_of_fixture);

TEST(T5, OutputsAndGreedyTokensAreTheRecordedOnes) {
  for (const char* name : {"t5", "t5-gated"}) {
    const auto verified = verify_folder(fixture("hf") / name, session());
    ASSERT_EQ(verified.size(), 4u);
    for (const VerifiedTensor& t : verified)
      EXPECT_TRUE(t.passed()) << name << ": " << t.name << ": " << t.difference << " > " << t.allowed;
  }
}

TEST(T5, RunsOnTheBlocksOfItsFile) {
  const test::TemporaryFolder folder;
  quantize_model(source_of_folder(fixture("hf/t5")), folder / "q.gguf", &find_type_mix("Q8_0"), {});
  const T5Files files = T5Files::open(folder / "q.gguf");
  const Graph graph = t5_graph(files.config, {.batch = 1, .length = 1, .decoder_length = 1}, stored_types(files.checkpoint, files.names));
  std::size_t packed = 0;
  for (const auto& [input, value] : graph.inputs()) packed += input.kind == InputKind::param && input.type.dtype == u8;
  EXPECT_EQ(packed, 23u);  // the rows of ten others are no whole blocks
  // A rounded weight or input is off by 1/127 / sqrt(12) of the largest of its 32 in the mean square, which is about twice the usual one;
  // errors of both in all products add up as squares. Allowed is twice that.
  const double allowed = 2 * std::sqrt(2.0 * static_cast<double>(packed)) * 2 / 127 / std::sqrt(12);
  const NamedArrays recorded = load_safetensors(fixture("hf/t5/expected.safetensors")).arrays;
  for (const VerifiedTensor& t : verify_model(folder / "q.gguf", fixture("hf/t5"), session())) {
    if (t.name == "greedy_ids") continue;
    const Array& values = recorded.at(t.name);
    double largest = 0;
    for (std::int64_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::abs(values.get_double(i)));
    EXPECT_LE(t.difference, allowed * largest) << t.name;
  }
}

std::vector<float> logits_of(const std::filesystem::path& model, std::span<const std::int32_t> prompt) {
  const DecoderFiles files = DecoderFiles::open(model);
  return CachedDecoder(session(), files, {.context = 40}).append(prompt, static_cast<std::int64_t>(prompt.size()));
}

TEST(Experts, MayBeStoredInSeveralTypes) {
  NamedArrays weights = load_safetensors(fixture("hf/mixtral/model.safetensors")).arrays;
  const auto logits_with = [&](DType dtype) {
    const test::TemporaryFolder folder;
    std::filesystem::copy(fixture("hf/mixtral/config.json"), folder / "config.json");
    NamedArrays changed = weights;
    for (const char* matrix : {"w1", "w2"}) {
      Array& expert = changed.at(fmt::format("model.layers.0.block_sparse_moe.experts.1.{}.weight", matrix));
      Array rounded(f16, expert.shape()), stored(dtype, expert.shape());
      for (std::int64_t i = 0; i < expert.size(); ++i) rounded.set_double(i, expert.get_double(i));
      for (std::int64_t i = 0; i < expert.size(); ++i) stored.set_double(i, rounded.get_double(i));
      expert = stored;
    }
    save_safetensors(folder / "model.safetensors", changed);
    return logits_of(folder.path(), prompt_of(256, 14));
  };
  // The same numbers, summed in another order.
  EXPECT_LE(largest_difference(logits_with(f16), logits_with(f32)), f32_distance("hf/mixtral"));
}

class EncoderFixture : public testing::TestWithParam<std::string> {};

TEST_P(EncoderFixture, OutputsAreTheRecordedOnes) {
  for (const bool claims : {true, false}) {
    SessionOptions options;
    options.claims = claims;
    const auto verified = verify_folder(fixture("hf/" + GetParam()), Session(Device::cpu(), options));
    ASSERT_EQ(verified.size(), 2u);
    for (const VerifiedTensor& t : verified) EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
  }
}

TEST_P(EncoderFixture, BothSpellingsOfTheConfigMeanTheSameGraph) {
  const auto graph_of = [](const DecoderConfig& config) {
    Graph graph;
    graph.output("last_hidden_state", encode_text(Flow(graph), config, 2, 24).states.back());
    return graph;
  };
  EXPECT_TRUE(structurally_equal(graph_of(config_of(fixture("hf/" + GetParam() + "/config.json"))),
                                 graph_of(config_of(fixture("hf/" + GetParam() + "/config_v4.json")))));
}

INSTANTIATE_TEST_SUITE_P(Families, EncoderFixture, testing::Values("modernbert", "nomic-bert"), name_of_fixture);

class GgufDecoder : public testing::TestWithParam<std::string> {};

// The files were made by scripts/gguf_models.py, from the folders of the same names; llama.cpp reads them, too (bench/llama_families.py).
TEST_P(GgufDecoder, LogitsAndGreedyTokensAreTheRecordedOnes) {
  const std::string folder = std::filesystem::exists(fixture("hf/" + GetParam())) ? "hf/" : "hf_more/";
  const auto verified = verify_model(fixture("gguf_models/" + GetParam() + ".gguf"), fixture(folder + GetParam()), session());
  ASSERT_GE(verified.size(), 3u);
  for (const VerifiedTensor& t : verified) EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

std::vector<std::string> files_of_others() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture("gguf_models"))) names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Families, GgufDecoder, testing::ValuesIn(files_of_others()), name_of_fixture);

/// A fixture's folder with its weights rounded to a narrow type, and stored as such or as f32.
class RoundedFolder {
 public:
  RoundedFolder(const std::string& name, DType rounded, DType stored)
      : path_(std::filesystem::path(testing::TempDir()) / fmt::format("rlx_rounded_{}_{}", getpid(), rlx::name(stored))) {
    std::filesystem::create_directory(path_);
    std::filesystem::copy(fixture("hf/" + name) / "config.json", path_ / "config.json");
    const SafetensorsFile file = SafetensorsFile::open(fixture("hf/" + name) / "model.safetensors");
    std::vector<Array> arrays;
    for (const TensorView& tensor : file.tensors()) {
      const Array from = to_array(tensor, nullptr);
      Array narrow(rounded, from.shape()), to(stored, from.shape());
      for (std::int64_t i = 0; i < from.size(); ++i) narrow.set_double(i, from.get_double(i)), to.set_double(i, narrow.get_double(i));
      arrays.push_back(std::move(to));
    }
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < arrays.size(); ++i) views.push_back(view_of(file.tensors()[i].name, arrays[i]));
    write_safetensors(path_ / "model.safetensors", views);
  }
  ~RoundedFolder() { std::filesystem::remove_all(path_); }
  RoundedFolder(const RoundedFolder&) = delete;
  RoundedFolder& operator=(const RoundedFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class NarrowWeights : public testing::TestWithParam<std::pair<const char*, DType>> {};

// Products widen narrow weights, which is exact; sums of f32 may come in another order. Rounded activations would show in the third digit.
TEST_P(NarrowWeights, GiveTheLogitsOfTheSameNumbersInF32) {
  const auto& [name, type] = GetParam();
  const RoundedFolder narrow(name, type, type), wide(name, type, f32);
  const auto logits = [](const RoundedFolder& folder) {
    const DecoderFiles files = DecoderFiles::open(folder.path());
    CachedDecoder decoder(session(), files, {.context = 40});
    return decoder.append(prompt_of(files.config.vocab_size, 21));
  };
  EXPECT_LT(largest_difference(logits(narrow), logits(wide)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Families, NarrowWeights,
                         testing::Values(std::pair{"llama", bf16}, std::pair{"mixtral", bf16}, std::pair{"mixtral", f16},
                                         std::pair{"gpt2", f16}, std::pair{"phi3", bf16}),
                         [](const auto& each) { return fmt::format("{}_{}", each.param.first, rlx::name(each.param.second)); });

TEST(StoredTypes, OfNarrowWeightsAreKept) {
  const RoundedFolder folder("mixtral", bf16, bf16);
  const DecoderFiles files = DecoderFiles::open(folder.path());
  const WeightStorage storage = stored_types(files.checkpoint, files.names);
  for (const char* matrix : {"token_embedding", "layers.0.attention.q", "layers.0.experts.gate"})
    EXPECT_EQ(storage(fmt::format("{}.weight", matrix)), "BF16") << matrix;
  const Graph graph = decoder_graph(files.config, {.capacity = 8, .chunk = 8, .storage = storage});
  for (const auto& [name, array] : files.weights(graph, 1)) EXPECT_EQ(array.dtype() == f32, array.shape().size() < 2) << name;
}

TEST(CachedDecoder, WhatWasForgottenDoesNotMatter) {
  Loaded model("hf/llama", {.context = 40});
  const auto prompt = prompt_of(256, 9), other = prompt_of(200, 12);
  model.decoder.append(prompt);
  const auto expected = model.decoder.append(std::span(other).first(2));
  model.decoder.rewind(9);
  model.decoder.append(other);
  model.decoder.rewind(9);
  EXPECT_EQ(model.decoder.append(std::span(other).first(2)), expected);
}

TEST(CachedDecoder, TokensThatDoNotFitAreRefusedAndNothingChanges) {
  Loaded model("hf/llama", {.context = 8});
  const auto prompt = prompt_of(256, 6);
  model.decoder.append(prompt);
  EXPECT_EQ(error_of([&] { model.decoder.append(std::span(prompt).first(3)); }),
            "9 tokens are more than the context holds (allowed: up to 8)");
  const std::int32_t unknown[] = {3, 256};
  EXPECT_EQ(error_of([&] { model.decoder.append(unknown); }), "token 256 is not in the vocabulary (allowed: 0..255)");
  EXPECT_EQ(error_of([&] { model.decoder.append({}); }), "there are no tokens to continue");
  EXPECT_EQ(model.decoder.ids().size(), 6u);
}

class CompiledOnce : public testing::TestWithParam<std::string> {};

TEST_P(CompiledOnce, RunsAnyLengthAtAnyPosition) {
  const Session session;
  const DecoderFiles files = DecoderFiles::open(fixture(GetParam()));
  CachedDecoder decoder(session, files, {.context = 300, .chunk = 64});
  const auto prompt = prompt_of(files.config.vocab_size, 129);
  decoder.append(std::span(prompt).first(5));
  const auto compiled = kernels_of(session);
  EXPECT_GT(compiled, 0);
  for (const std::size_t length : {1U, 2U, 64U, 65U, 129U}) decoder.append(std::span(prompt).first(length));
  decoder.append(prompt_of(120, 3), 2);  // the logits of several
  decoder.rewind(7);
  for (std::int32_t id : {1, 2, 3}) decoder.append(std::span(&id, 1));
  EXPECT_EQ(kernels_of(session), compiled);
}

INSTANTIATE_TEST_SUITE_P(Families, CompiledOnce,
                         testing::Values("hf/llama", "hf/gemma3", "hf/phi3-longrope", "hf/mixtral", "hf/qwen3_next", "hf_more/deepseek_v3",
                                         "hf_more/mamba2", "hf_more/jamba", "hf_more/lfm2"),
                         name_of_fixture);

class ScansInChunks : public testing::TestWithParam<std::string> {};

// 150 tokens are three chunks of 50, then two of 38 with padding behind the last. Five tokens are one chunk, and states go from run to run.
TEST_P(ScansInChunks, GiveTheLogitsOfShortRuns) {
  Loaded chunked(GetParam(), {.context = 240}), single(GetParam(), {.context = 240, .chunk = 5});
  const auto prompt = prompt_of(chunked.files.config.vocab_size, 225);
  chunked.decoder.append(std::span(prompt).first(150));
  EXPECT_LE(largest_difference(chunked.decoder.append(std::span(prompt).subspan(150)), single.decoder.append(prompt)),
            f32_distance(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Families, ScansInChunks, testing::Values("hf_more/mamba2", "hf_more/mamba2-limited"));

class UnlikeLengths : public testing::TestWithParam<std::string> {};

// Two sequences in one run: padding, and what it leaves in caches and recurrent states, is not seen.
TEST_P(UnlikeLengths, DoNotDisturbEachOther) {
  Loaded alone(GetParam(), {.context = 16});
  const auto prompt = prompt_of(128, 7);
  const Graph graph = decoder_graph(alone.files.config, {.sequences = 2, .capacity = 16, .chunk = 8});
  Executable both = session().compile(graph);
  both.set_params(alone.files.weights(graph, 1));
  Array ids(i32, {2, 7}), past(i32, {2}), rows(i32, {2, 1}), mask(i32, {2, 1, 8}), next(i32, {2, 1}), zero(i32, {2, 1}),
      one(i32, {2, 1, 1});
  for (std::int64_t i = 0; i < 7; ++i) {
    ids.set_int(i, prompt[static_cast<std::size_t>(i)]);
    ids.set_int(7 + i, i < 3 ? prompt[static_cast<std::size_t>(i)] : 0);
  }
  const auto run = [&](const Array& tokens, const Array& wanted, const Array& real) {
    std::map<std::string, Feed> feeds{{"input_ids", tokens}, {"past", past}, {"rows", wanted}};
    if (alone.files.config.is_recurrent()) feeds.emplace("mask", real);
    return both.run(feeds).at("logits");
  };
  rows.set_int(0, 6), rows.set_int(1, 2);
  for (std::int64_t i = 0; i < 7; ++i) mask.set_int(i, 1), mask.set_int(8 + i, i < 3);
  run(ids, rows, mask);
  for (std::int64_t i = 0; i < 2; ++i) next.set_int(i, 9), one.set_int(i, 1), past.set_int(i, i == 0 ? 7 : 3);
  const Array logits = run(next, zero, one);
  const std::int32_t nine = 9;
  alone.decoder.append(prompt);
  const auto vocabulary = static_cast<std::size_t>(alone.files.config.vocab_size);
  EXPECT_LE(largest_difference(logits.values<float>().first(vocabulary), alone.decoder.append(std::span(&nine, 1))),
            f32_distance(GetParam()));
  alone.decoder.rewind(0);
  alone.decoder.append(std::span(prompt).first(3));
  EXPECT_LE(largest_difference(logits.values<float>().last(vocabulary), alone.decoder.append(std::span(&nine, 1))),
            f32_distance(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Families, UnlikeLengths,
                         testing::Values("hf/llama", "hf/qwen3_next", "hf/mamba", "hf_more/deepseek_v3", "hf_more/lfm2", "hf_more/mamba2",
                                         "hf_more/jamba"));

TEST(DecoderConfig, WhatIsNotSupportedIsNamed) {
  const auto file = fixture("hf/llama/config.json");
  EXPECT_EQ(error_of([&] { config_of(file, R"({"num_key_value_heads": 3})"); }),
            "config.json: num_key_value_heads: 3 do not divide 4 attention heads");
  for (const char* change : {R"({"hidden_act": "sine"})", R"({"num_hidden_layers": 0})", R"({"head_dim": 15})",
                             R"({"hidden_size": 99999999999})", R"({"rope_parameters": {"rope_type": "spiral", "rope_theta": 1e4}})",
                             R"({"rope_parameters": {"rope_type": "llama3", "factor": 0}})", R"({"rope_parameters": {"rope_theta": -1}})",
                             R"({"rms_norm_eps": -1e-6})", R"({"vocab_size": null})"}) {
    EXPECT_NE(error_of([&] { config_of(file, change); }).find("config.json: "), std::string::npos) << change;
  }
}

TEST(DecoderWeights, MissingTensorsAreNamedAllAtOnce) {
  DecoderConfig config = config_of(fixture("hf/llama/config.json"));
  const Checkpoint checkpoint = Checkpoint::open(fixture("hf/llama/model.safetensors"));
  config.qkv_bias = true;
  const Graph graph = decoder_graph(config, {.capacity = 8, .chunk = 8});
  const std::string error = error_of([&] { load_weights(graph, checkpoint, DecoderFamily::find("llama")->weight_names(config), 1); });
  EXPECT_NE(error.find("model.safetensors: the checkpoint lacks 'layers.0.self_attn.k_proj.bias', 'layers.0.self_attn.q_proj.bias'"),
            std::string::npos)
      << error;
}

}  // namespace decoder_test
}  // namespace rlx
