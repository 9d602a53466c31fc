#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/model.h"
#include "rlx/session.h"

namespace rlx {

struct RerankerOptions {
  std::int64_t batch_size = 32;  // most texts that run together, 1..4096; memory grows with it
  // Whether scores go through a sigmoid, so that they lie in 0..1. Nothing: as the model's config says, and yes where it says nothing.
  std::optional<bool> sigmoid = std::nullopt;
  std::vector<Adapter> adapters = {};  // several add up
};

/// A text's place among those that were given, and how well it answers the query.
struct RankedText {
  std::size_t index = 0;
  float score = 0;
};

/// Scores texts for a query with a cross-encoder: a BERT, RoBERTa, XLM-RoBERTa, DistilBERT or ModernBERT for sequence classification with
/// one label. Copies share everything; all but `open` may be called from many threads at a time.
class Reranker {
 public:
  /// Reads a folder with config.json, a tokenizer and safetensors files, or a GGUF file. Throws Error naming the file and the field that is
  /// missing, wrong or not supported, and for a model that does not score texts or has several labels.
  static Reranker open(const std::filesystem::path& path, const Session& session, RerankerOptions options = {});

  /// Called after each batch with the number of texts done so far; what it throws ends the work.
  using Progress = std::function<void(std::size_t done, std::size_t total)>;

  /// The score of each text for the query, in order. Of a pair that is longer than the model allows, the longer text is cut.
  std::vector<float> score(const std::string& query, std::span<const std::string> texts, const Progress& progress = {}) const;
  /// The same, the best first; equal ones in order.
  std::vector<RankedText> rank(const std::string& query, std::span<const std::string> texts, const Progress& progress = {}) const;

 private:
  struct State;
  explicit Reranker(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace rlx
