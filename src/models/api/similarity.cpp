#include "rlx/similarity.h"

#include <algorithm>
#include <cmath>

namespace rlx {

double cosine(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) fail("the cosine of vectors of {} and {} values", a.size(), b.size());
  double dot = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return aa > 0 && bb > 0 ? dot / std::sqrt(aa * bb) : 0;
}

Array similarity_matrix(std::span<const Embedding> embeddings) {
  constexpr std::size_t limit = 20000;
  const std::size_t count = embeddings.size();
  if (count > limit) fail("a similarity matrix of {} texts is too large (allowed: up to {})", count, limit);
  Array matrix(f32, {static_cast<std::int64_t>(count), static_cast<std::int64_t>(count)});
  const auto values = matrix.mutable_values<float>();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i; j < count; ++j) {
      values[i * count + j] = values[j * count + i] = static_cast<float>(cosine(embeddings[i].values, embeddings[j].values));
    }
  }
  return matrix;
}

std::vector<SimilarPair> nearest_pairs(const Array& matrix) {
  if (matrix.rank() != 2 || matrix.shape()[0] != matrix.shape()[1])
    fail("a matrix of similarities must have one row and one column a text");
  const auto count = static_cast<std::size_t>(matrix.shape()[0]);
  const auto values = matrix.values<float>();
  std::vector<SimilarPair> pairs;
  for (std::size_t i = 0; count > 1 && i < count; ++i) {
    std::size_t best = i == 0 ? 1 : 0;
    for (std::size_t j = 0; j < count; ++j) {
      if (j != i && values[i * count + j] > values[i * count + best]) best = j;
    }
    pairs.push_back({std::min(i, best), std::max(i, best), values[i * count + best]});
  }
  auto by_texts = [](const SimilarPair& a, const SimilarPair& b) { return std::pair(a.first, a.second) < std::pair(b.first, b.second); };
  std::sort(pairs.begin(), pairs.end(), by_texts);
  auto same = [](const SimilarPair& a, const SimilarPair& b) { return a.first == b.first && a.second == b.second; };
  pairs.erase(std::unique(pairs.begin(), pairs.end(), same), pairs.end());
  std::stable_sort(pairs.begin(), pairs.end(), [](const SimilarPair& a, const SimilarPair& b) { return a.similarity > b.similarity; });
  return pairs;
}

}  // namespace rlx
