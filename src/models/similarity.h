#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "models/sentence_encoder.h"

namespace rlx {

/// The cosine of the angle between two vectors of one size; 0 when either is zero.
double cosine(std::span<const float> a, std::span<const float> b);

/// Row i, column j: the cosine of embeddings i and j, as a (count, count) matrix of f32. Throws Error above 20000 texts (1.6 GB).
Array similarity_matrix(std::span<const Embedding> embeddings);

/// Two texts by index, first < second.
struct SimilarPair {
  std::size_t first, second;
  float similarity;
};

/// Every text with the one nearest to it, each pair once, the most similar first. `matrix` is one of `similarity_matrix`.
std::vector<SimilarPair> nearest_pairs(const Array& matrix);

}  // namespace rlx
