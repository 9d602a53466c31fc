// Labels of texts and of their parts, against what transformers' pipelines gave of the same models.
#include <algorithm>

#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "rlx/classifier.h"
#include "rlx/convert.h"
#include "rlx/reranker.h"
#include "rlx/verify.h"

namespace rlx::test {
namespace {

constexpr double allowed = 2e-5;  // scores are off by less than logits, which verify allows 9e-6 to 4e-5

std::string name_of_model(const testing::TestParamInfo<std::string>& each) {
  std::string name = each.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::filesystem::path labelling(const std::string& name) { return fixture("labels/" + name); }

struct RecordedLabels {
  explicit RecordedLabels(const std::string& name) : rows(json::read_file(labelling(name) / "texts.json").at("rows")) {
    for (const json::Value& row : rows) {
      const json::Value& text = row.at("text");
      if (text.is_string()) texts.push_back(text);
      else pairs.push_back({text.at(0), text.at(1)});
    }
  }
  json::Value rows;  // texts, then pairs
  std::vector<std::string> texts;
  std::vector<TextPair> pairs;
};

class LabelledTexts : public testing::TestWithParam<std::string> {};

TEST_P(LabelledTexts, HaveTheRecordedScores) {
  const RecordedLabels recorded(GetParam());
  for (const VerifiedTensor& t : verify_folder(labelling(GetParam()), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
  const auto classifier = Classifier::open(labelling(GetParam()), Session(), {.batch_size = 3});
  EXPECT_FALSE(classifier.labels_parts());
  auto labelled = classifier.classify(recorded.texts);
  std::ranges::copy(classifier.classify(recorded.pairs), std::back_inserter(labelled));
  ASSERT_GT(recorded.pairs.size(), 3u);
  ASSERT_EQ(labelled.size(), recorded.rows.size());
  for (std::size_t i = 0; i < labelled.size(); ++i) {
    const json::Value& expected = recorded.rows.at(i).at("labels");
    ASSERT_EQ(labelled[i].size(), expected.size());
    for (std::size_t k = 0; k < labelled[i].size(); ++k) {
      EXPECT_NEAR(labelled[i][k].score, expected.at(classifier.labels()[labelled[i][k].label]).get<double>(), allowed) << "row " << i;
      EXPECT_GE(labelled[i][k > 0 ? k - 1 : 0].score, labelled[i][k].score);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LabelledTexts, testing::Values("bert-feelings", "roberta-topics", "distilbert-number", "modernbert-one"),
                         name_of_model);

class LabelledParts : public testing::TestWithParam<std::string> {};

TEST_P(LabelledParts, AreTheRecordedOnes) {
  const RecordedLabels recorded(GetParam());
  for (const VerifiedTensor& t : verify_folder(labelling(GetParam()), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
  const auto classifier = Classifier::open(labelling(GetParam()), Session(), {.batch_size = 3});
  EXPECT_TRUE(classifier.labels_parts());
  const auto labelled = classifier.parts(recorded.texts);
  ASSERT_EQ(labelled.size(), recorded.texts.size());
  for (std::size_t i = 0; i < labelled.size(); ++i) {
    const json::Value& expected = recorded.rows.at(i).at("labels");
    ASSERT_EQ(labelled[i].size(), expected.size()) << recorded.texts[i];
    for (std::size_t k = 0; k < labelled[i].size(); ++k) {
      EXPECT_EQ(labelled[i][k].label, expected.at(k).at("label").get<std::string>()) << recorded.texts[i];
      EXPECT_EQ(labelled[i][k].begin, expected.at(k).at("begin").get<std::size_t>()) << recorded.texts[i];
      EXPECT_EQ(labelled[i][k].end, expected.at(k).at("end").get<std::size_t>()) << recorded.texts[i];
      EXPECT_NEAR(labelled[i][k].score, expected.at(k).at("score").get<double>(), allowed) << recorded.texts[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LabelledParts,
                         testing::Values("bert-tokens", "roberta-tokens", "distilbert-tokens", "xlm-roberta-tokens", "modernbert-tokens"),
                         name_of_model);

TEST(Classifier, LabelsOfAGgufFileAreThoseOfItsFolder) {
  const TemporaryFolder folder;
  convert(labelling("bert-feelings"), folder / "m.gguf");
  const auto original = Classifier::open(labelling("bert-feelings"), Session()), converted = Classifier::open(folder / "m.gguf", Session());
  EXPECT_EQ(original.labels(), converted.labels());
  EXPECT_EQ(original.labels(), (std::vector<std::string>{"NEGATIVE", "neutral, or neither", "POSITIVE"}));
  const std::vector<std::string> text{"A small dog"};
  const auto a = original.classify(text)[0], b = converted.classify(text)[0];
  for (std::size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(a[k].label, b[k].label);
    EXPECT_NEAR(a[k].score, b[k].score, 2e-3);  // F16 weights
  }
  EXPECT_NE(
      error_of([&] { convert(labelling("bert-tokens"), folder / "n.gguf"); }).find("it labels each token, which GGUF files cannot say"),
      std::string::npos);
}

TEST(Classifier, SaysWhatAModelIsNotMadeFor) {
  const auto message = [](const std::filesystem::path& path) { return error_of([&] { Classifier::open(path, Session()); }); };
  EXPECT_NE(message(fixture("hf_more/roberta")).find("the model has no labels (needed: "), std::string::npos);
  EXPECT_NE(message(fixture("hf/llama")).find("the model continues texts"), std::string::npos) << message(fixture("hf/llama"));
  const auto parts = Classifier::open(labelling("bert-tokens"), Session()),
             whole = Classifier::open(labelling("modernbert-one"), Session());
  const std::vector<std::string> text{"A small dog"};
  EXPECT_EQ(error_of([&] { parts.classify(text); }), "classify: the model labels parts of texts (parts gives these)");
  EXPECT_EQ(error_of([&] { whole.parts(text); }), "parts: the model labels whole texts (classify gives these labels)");
  EXPECT_NE(error_of([] { Reranker::open(labelling("bert-tokens"), Session()); }).find("the model scores no texts"), std::string::npos);
}

TEST(Classifier, ConfigsThatLieAreNamed) {
  const TemporaryFolder folder;
  for (const char* file : {"model.safetensors", "tokenizer.json"})
    std::filesystem::copy_file(labelling("bert-feelings") / file, folder / file);
  const json::Value original = json::read_file(labelling("bert-feelings") / "config.json");
  const auto message = [&](const char* changes) {
    json::Value config = original;
    config.update(json::parse(changes, "changes"));
    std::filesystem::remove(folder / "config.json");
    write_text(folder / "config.json", config.dump());
    const std::string opening = error_of([&] { Classifier::open(folder.path(), Session()); });
    if (opening.find("'id2label'") != std::string::npos) {
      EXPECT_EQ(error_of([&] { convert(folder.path(), folder / "m.gguf"); }), opening);
    }
    return opening;
  };
  EXPECT_NE(message(R"({"id2label": {"0": "a", "1": "b", "3": "c"}})").find("['id2label']: the field '2' is missing"), std::string::npos);
  EXPECT_NE(message(R"({"id2label": {"0": "a", "1": 7, "2": "c"}})").find("['id2label']['1']: expected a string"), std::string::npos);
  EXPECT_NE(message(R"({"id2label": {"0": "a"}})").find("classifier"), std::string::npos);
  EXPECT_NE(message(R"({"problem_type": "poetry"})").find("problem_type"), std::string::npos);
}

TEST(Classifier, NamesInAGgufFileAreOneForEachLabel) {
  const TemporaryFolder folder;
  convert(labelling("bert-feelings"), folder / "m.gguf");
  const GgufFile whole = GgufFile::open(folder / "m.gguf");
  GgufMetadata metadata;
  metadata.copy(whole.metadata());
  metadata.set_strings("bert.classifier.output_labels", std::vector<std::string>{"one", "two"});
  const std::vector<TensorView> tensors(whole.tensors().begin(), whole.tensors().end());
  GgufWriter writer(folder / "lacking.gguf", metadata, tensors);
  for (const TensorView& tensor : tensors) writer.write(tensor.data);
  writer.commit();
  for (const std::string& error : {error_of([&] { Classifier::open(folder / "lacking.gguf", Session()); }),
                                   error_of([&] { convert(folder / "lacking.gguf", folder / "back"); })})
    EXPECT_NE(error.find("lacking.gguf: bert.classifier.output_labels has 2 names for 3 labels"), std::string::npos) << error;
}

}  // namespace
}  // namespace rlx::test
