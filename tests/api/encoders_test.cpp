// Embedding and scoring with what transformers and PEFT recorded, by the public headers alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "fixture.h"
#include "rlx/convert.h"
#include "rlx/error.h"
#include "rlx/io.h"
#include "rlx/reranker.h"
#include "rlx/sentence_encoder.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

/// A copy of a model's folder with a tokenizer and the modules of sentence-transformers, which goes away with it.
class SentenceFolder {
 public:
  explicit SentenceFolder(const char* model) : path_(fs::path(testing::TempDir()) / "rlx_api_encoders") {
    fs::remove_all(path_);
    fs::create_directories(path_ / "1_Pooling");
    for (const char* name : {"config.json", "model.safetensors"}) fs::copy_file(fixture(model) / name, path_ / name);
    fs::copy_file(fixture("sentence_model/tokenizer.json"), path_ / "tokenizer.json");
    write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
    modules({"Transformer", "Pooling", "Normalize"}, {"", "1_Pooling", "2_Normalize"});
  }
  ~SentenceFolder() { fs::remove_all(path_); }
  SentenceFolder(const SentenceFolder&) = delete;
  SentenceFolder& operator=(const SentenceFolder&) = delete;

  const fs::path& path() const { return path_; }
  void write(const char* name, const std::string& text) const { std::ofstream(path_ / name) << text; }
  void modules(const std::vector<std::string>& kinds, const std::vector<std::string>& paths) const {
    std::string text;
    for (std::size_t i = 0; i < kinds.size(); ++i)
      text +=
          std::string(i > 0 ? ", " : "") + R"({"path": ")" + paths[i] + R"(", "type": "sentence_transformers.models.)" + kinds[i] + R"("})";
    write("modules.json", "[" + text + "]");
  }

 private:
  fs::path path_;
};

using Vectors = std::vector<std::vector<double>>;

/// The mean of each text's recorded states, without those of padding.
Vectors means(const NamedArrays& recorded, const std::string& name) {
  const Array &states = recorded.at(name), &mask = recorded.at("attention_mask");
  const std::int64_t length = states.shape()[1], width = states.shape()[2];
  Vectors out(static_cast<std::size_t>(states.shape()[0]), std::vector<double>(static_cast<std::size_t>(width)));
  for (std::size_t text = 0; text < out.size(); ++text) {
    const auto first = static_cast<std::int64_t>(text) * length;
    double tokens = 0;
    for (std::int64_t at = first; at < first + length; ++at) {
      if (mask.get_int(at) == 0) continue;
      ++tokens;
      for (std::int64_t i = 0; i < width; ++i) out[text][static_cast<std::size_t>(i)] += states.get_double(at * width + i);
    }
    for (double& value : out[text]) value /= tokens;
  }
  return out;
}

void normalise(Vectors& vectors) {
  for (auto& vector : vectors) {
    double squares = 0;
    for (double value : vector) squares += value * value;
    for (double& value : vector) value /= std::sqrt(squares);
  }
}

using Rows = std::vector<std::vector<std::int32_t>>;

/// The rows of recorded integers, without those of padding.
Rows rows_without_padding(const NamedArrays& recorded, const std::string& name) {
  const Array &values = recorded.at(name), &mask = recorded.at("attention_mask");
  const std::int64_t length = values.shape()[1];
  Rows rows(static_cast<std::size_t>(values.shape()[0]));
  for (std::int64_t i = 0; i < values.size(); ++i)
    if (mask.get_int(i) != 0) rows[static_cast<std::size_t>(i / length)].push_back(static_cast<std::int32_t>(values.get_int(i)));
  return rows;
}

/// What the encoder gives for the recorded tokens.
Array embedded(const SentenceEncoder& encoder, const NamedArrays& recorded) {
  const Rows ids = rows_without_padding(recorded, "input_ids");
  const Rows types = recorded.contains("token_type_ids") ? rows_without_padding(recorded, "token_type_ids") : Rows(ids.size());
  std::vector<TokenRow> texts;
  for (std::size_t i = 0; i < ids.size(); ++i) texts.push_back({ids[i], types[i]});
  return encoder.executable().run(encoder.inputs(texts)).at("embedding");
}

/// Ten times the recording's own distance between f32 and f64; means, and vectors made shorter, are no farther off.
double allowed(const NamedArrays& recorded, const std::string& name) {
  const Array &narrow = recorded.at(name), &wide = recorded.at(name + "_f64");
  double distance = 0;
  for (std::int64_t i = 0; i < wide.size(); ++i) distance = std::max(distance, std::abs(narrow.get_double(i) - wide.get_double(i)));
  return 10 * distance;
}

void expect_near(const Array& values, const Vectors& expected, double tolerance) {
  ASSERT_EQ(values.size(), static_cast<std::int64_t>(expected.size() * expected[0].size()));
  std::int64_t at = 0;
  for (const auto& vector : expected)
    for (double value : vector) EXPECT_NEAR(values.get_double(at++), value, tolerance);
}

TEST(SentenceEncoder, OfAT5IsTheMeanOfItsEncodersStates) {
  const SentenceFolder folder("hf/t5");
  const NamedArrays recorded = load_safetensors(fixture("hf/t5/expected.safetensors")).arrays;
  Vectors expected = means(recorded, "encoder_last_hidden_state_f64");
  normalise(expected);
  const SentenceEncoder encoder = SentenceEncoder::open(folder.path(), Session());
  EXPECT_EQ(encoder.width(), 64);
  expect_near(embedded(encoder, recorded), expected, allowed(recorded, "encoder_last_hidden_state"));
  EXPECT_EQ(encoder.encode(std::vector<std::string>{"a cat"})[0].values.size(), 64u);
  const fs::path gguf = folder.path() / "t5.gguf";
  convert(folder.path(), gguf, {.type = "F32"});
  const SentenceEncoder same = SentenceEncoder::open(gguf, Session(), {.pooling = "mean"});
  expect_near(embedded(same, recorded), expected, allowed(recorded, "encoder_last_hidden_state"));
  EXPECT_THROW(SentenceEncoder::open(folder.path(), Session(), {.adapters = {{fixture("lora/bert")}}}), Error);
}

double least_cosine(const Array& values, const Vectors& expected) {
  double least = 1;
  std::int64_t at = 0;
  for (const auto& vector : expected) {
    double dot = 0, squares = 0, wanted = 0;
    for (double value : vector) {
      const double own = values.get_double(at++);
      dot += own * value, squares += own * own, wanted += value * value;
    }
    least = std::min(least, dot / std::sqrt(squares * wanted));
  }
  return least;
}

/// Texts of unlike lengths, which run one behind the other.
TEST(SentenceEncoder, EmbeddingsAreTheMeansOfRecordedStates) {
  for (const char* model : {"hf/bert", "hf/nomic-bert", "hf_more/roberta", "hf_more/distilbert"}) {
    const SentenceFolder folder(model);
    const NamedArrays recorded = load_safetensors(fixture(std::string(model) + "/expected.safetensors")).arrays;
    Vectors expected = means(recorded, "last_hidden_state_f64");
    normalise(expected);
    expect_near(embedded(SentenceEncoder::open(folder.path(), Session()), recorded), expected, allowed(recorded, "last_hidden_state"));
    const Session narrow(Device::cpu(), {.precision = Precision::bf16});
    EXPECT_GE(least_cosine(embedded(SentenceEncoder::open(folder.path(), narrow), recorded), expected), 0.9995) << model;
  }
}

TEST(SentenceEncoder, TokensThatDoNotFitAreNamed) {
  const SentenceFolder folder("hf/bert");
  const SentenceEncoder encoder = SentenceEncoder::open(folder.path(), Session(), {.batch_size = 2});
  const std::vector<std::int32_t> good{2, 3}, long_text(41, 5), unknown{2, 256}, negative{-1, 3}, types{0, 2}, few{0};
  const auto message = [&](const std::vector<TokenRow>& texts) {
    try {
      encoder.inputs(texts);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({{good}, {good}}), "");
  EXPECT_EQ(message({}), "0 texts in one run (allowed: 1..2)");
  EXPECT_EQ(message({{good}, {good}, {good}}), "3 texts in one run (allowed: 1..2)");
  EXPECT_EQ(message({{good}, {}}), "text 1 has 0 tokens (allowed: 1..40)");
  EXPECT_EQ(message({{long_text}}), "text 0 has 41 tokens (allowed: 1..40)");
  EXPECT_EQ(message({{unknown}}), "text 0: token 256 (allowed: 0..255)");
  EXPECT_EQ(message({{negative}}), "text 0: token -1 (allowed: 0..255)");
  EXPECT_EQ(message({{good, few}}), "text 0 has 2 tokens, but types of 1");
  EXPECT_EQ(message({{good, types}}), "text 0: token type 2 (allowed: 0..1)");
}

TEST(SentenceEncoder, ADenseLayerBehindThePoolingIsItsOwn) {
  const SentenceFolder folder("hf/t5");
  const NamedArrays recorded = load_safetensors(fixture("hf/t5/expected.safetensors")).arrays;
  std::vector<float> weight(3 * 64), bias{0.5F, -0.25F, 0};
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(std::sin(static_cast<double>(i))) / 8;
  fs::create_directories(folder.path() / "2_Dense");
  save_safetensors(folder.path() / "2_Dense/model.safetensors",
                   {{"linear.weight", Array::of<float>({3, 64}, weight)}, {"linear.bias", Array::of<float>({3}, bias)}});
  folder.modules({"Transformer", "Pooling", "Dense"}, {"", "1_Pooling", "2_Dense"});
  const auto config = [&](const char* in, const char* activation) {
    folder.write("2_Dense/config.json", std::string(R"({"in_features": )") + in +
                                            R"(, "out_features": 3, "bias": true, "activation_function":
      "torch.nn.modules.activation.)" + activation +
                                            "\"}");
  };
  config("64", "Tanh");
  Vectors expected;
  for (const auto& mean : means(recorded, "encoder_last_hidden_state_f64")) {
    std::vector<double> out(bias.begin(), bias.end());
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t i = 0; i < 64; ++i) out[row] += static_cast<double>(weight[row * 64 + i]) * mean[i];
      out[row] = std::tanh(out[row]);
    }
    expected.push_back(out);
  }
  const SentenceEncoder encoder = SentenceEncoder::open(folder.path(), Session());
  EXPECT_EQ(encoder.width(), 3);
  expect_near(embedded(encoder, recorded), expected, allowed(recorded, "encoder_last_hidden_state"));
  config("32", "Tanh");
  EXPECT_THROW(SentenceEncoder::open(folder.path(), Session()), Error) << "the pooling gives 64 values";
  config("64", "Softmax2d");
  EXPECT_THROW(SentenceEncoder::open(folder.path(), Session()), Error);
}

TEST(SentenceEncoder, AnAdapterChangesItAsPeftDoes) {
  const SentenceFolder folder("hf/bert");
  const NamedArrays recorded = load_safetensors(fixture("lora/bert/expected.safetensors")).arrays;
  Vectors expected = means(recorded, "last_hidden_state_f64");
  normalise(expected);
  expect_near(embedded(SentenceEncoder::open(folder.path(), Session(), {.adapters = {{fixture("lora/bert")}}}), recorded), expected,
              allowed(recorded, "last_hidden_state"));
  const std::vector<Adapter> taken_back{{fixture("lora/bert")}, {fixture("lora/bert"), -1}};
  const NamedArrays plain = load_safetensors(fixture("hf/bert/expected.safetensors")).arrays;
  expected = means(plain, "last_hidden_state_f64");
  normalise(expected);
  expect_near(embedded(SentenceEncoder::open(folder.path(), Session(), {.adapters = taken_back}), plain), expected,
              allowed(plain, "last_hidden_state"));
}

TEST(Reranker, AnAdapterChangesItAsPeftDoes) {
  const NamedArrays recorded = load_safetensors(fixture("lora/bert-scores/expected.safetensors")).arrays;
  const std::vector<std::string> texts{"A small dog", "Prices rose", "The beach"};
  const Reranker reranker =
      Reranker::open(fixture("hf_more/bert-scores"), Session(), {.sigmoid = false, .adapters = {{fixture("lora/bert-scores")}}});
  const std::vector<float> scores = reranker.score("dog", texts);
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_NEAR(scores[i], recorded.at("logits_f64").get_double(static_cast<std::int64_t>(i)), allowed(recorded, "logits"));
}

}  // namespace
}  // namespace rlx::test
