#pragma once
#include <span>
#include <string>

#include "rlx/sentence_encoder.h"

namespace rlx::command {

/// `text` in exactly `columns` columns of a terminal: cut with "..." or filled with spaces, control characters as spaces.
std::string fit_columns(const std::string& text, std::size_t columns);

/// For people: the line above the texts, and a line for each: the text, its number of tokens, the first values.
void print_table_head(std::int64_t width);
void print_table(std::span<const std::string> texts, std::span<const Embedding> embeddings);
/// One object a line: {"text": ..., "ids": [...], "embedding": [...]}. Values have the digits that give the same float back.
void print_json(std::span<const std::string> texts, std::span<const Embedding> embeddings);
/// The matrix of cosines and each text's nearest neighbour.
void print_similarity(std::span<const std::string> texts, std::span<const Embedding> embeddings);
/// The same as one object: {"texts": [...], "similarity": [[...]], "nearest": [{"first": 0, "second": 3, "similarity": 0.9}]}.
void print_similarity_json(std::span<const std::string> texts, std::span<const Embedding> embeddings);

}  // namespace rlx::command
