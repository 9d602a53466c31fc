#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/model.h"
#include "rlx/session.h"

namespace rlx {

struct ClassifierOptions {
  std::int64_t batch_size = 32;        // most texts that run together, 1..4096; memory grows with it
  std::vector<Adapter> adapters = {};  // several add up
};

/// Two texts that are labelled together, such as a premise and what may follow from it.
struct TextPair {
  std::string first, second;
};

/// A label of a text, and how sure the model is of it, 0..1.
struct ScoredLabel {
  std::size_t label = 0;  // its place in Classifier::labels
  float score = 0;
};

/// A part of a text with a label of its own, such as a name or a place.
struct LabelledPart {
  std::string label;               // without B- and I-, which say whether a part begins or goes on
  float score = 0;                 // the mean of its tokens', 0..1
  std::size_t begin = 0, end = 0;  // [begin, end) in bytes of the text
};

/// Labels texts, or parts of them, with a BERT, RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT or ModernBERT for sequence classification or
/// for token classification. Copies share everything; all but `open` may be called from many threads at a time.
class Classifier {
 public:
  /// Reads a folder with config.json, a tokenizer and safetensors files, or a GGUF file. Throws Error naming the file and the field that is
  /// missing, wrong or not supported, and for a model without labels.
  static Classifier open(const std::filesystem::path& path, const Session& session, ClassifierOptions options = {});

  /// The names of the labels, as config.json's id2label or the GGUF file has them; LABEL_0 and so on where there are none.
  const std::vector<std::string>& labels() const;
  /// Whether the model labels parts of texts, and not whole ones.
  bool labels_parts() const;

  /// Called after each batch with the number of texts done so far; what it throws ends the work.
  using Progress = std::function<void(std::size_t done, std::size_t total)>;

  /// For each text all labels, the likeliest first; equal ones in order. Scores of one label, and of labels that exclude none
  /// (problem_type "multi_label_classification"), are sigmoids, of a regression the model's numbers, all others a softmax. Texts that are
  /// longer than the model allows are cut, of pairs the longer text. Throws Error for a model that labels parts; messages count texts from
  /// the first of `before` ones that other calls took.
  std::vector<std::vector<ScoredLabel>> classify(std::span<const std::string> texts, const Progress& progress = {},
                                                 std::size_t before = 0) const;
  std::vector<std::vector<ScoredLabel>> classify(std::span<const TextPair> pairs, const Progress& progress = {},
                                                 std::size_t before = 0) const;
  /// For each text its parts that have a label, in order: each token has its likeliest one, and neighbours of one label are one part until
  /// a B- begins the next. O, which says that there is nothing, is left out. Throws Error for a model that labels whole texts.
  std::vector<std::vector<LabelledPart>> parts(std::span<const std::string> texts, const Progress& progress = {},
                                               std::size_t before = 0) const;

 private:
  struct State;
  explicit Classifier(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace rlx
