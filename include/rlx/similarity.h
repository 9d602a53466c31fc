#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "rlx/sentence_encoder.h"

namespace rlx {

/// The cosine of the angle between two vectors; 0 when either is zero. Throws Error when their sizes differ.
double cosine(std::span<const float> a, std::span<const float> b);

/// Row i, column j: the cosine of embeddings i and j, as a (count, count) matrix of f32. Throws Error above 20000 texts (1.6 GB).
Array similarity_matrix(std::span<const Embedding> embeddings);

/// Two texts by index, first < second.
struct SimilarPair {
  std::size_t first, second;
  float similarity;
};

/// Every text with the one nearest to it, each pair once, the most similar first. `matrix` is one of
/// `similarity_matrix`; throws Error for one that is not square or not f32.
std::vector<SimilarPair> nearest_pairs(const Array& matrix);

}  // namespace rlx
