#include "reports/embed_output.h"

#include <cmath>

#include <fmt/ranges.h>
#include <utf8proc.h>

#include "formats/json/json.h"
#include "rlx/similarity.h"
#include "text/unicode/unicode.h"

namespace rlx::command {
namespace {

constexpr std::size_t text_columns = 44;

/// JSON has no word for what is not finite.
std::string json_number(float value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string json_numbers(std::span<const float> values) {
  std::vector<std::string> words;
  words.reserve(values.size());
  for (float value : values) words.push_back(json_number(value));
  return fmt::format("[{}]", fmt::join(words, ","));
}

std::string json_text(const std::string& text) { return json::quote(text, "text"); }

void print_matrix(std::span<const std::string> texts, const Array& matrix) {
  const auto values = matrix.values<float>();
  const std::size_t count = texts.size();
  fmt::print("{:>4}  {}", "", std::string(text_columns, ' '));
  for (std::size_t j = 0; j < count; ++j) fmt::print("{:>6}", j + 1);
  fmt::print("\n");
  for (std::size_t i = 0; i < count; ++i) {
    fmt::print("{:>4}  {}", i + 1, fit_columns(texts[i], text_columns));
    for (float value : values.subspan(i * count, count)) fmt::print("{:>6.2f}", value);
    fmt::print("\n");
  }
}

}  // namespace

std::string fit_columns(const std::string& text, std::size_t columns) {
  std::string fitted, shortened;  // all that fits, and what still leaves room for the dots
  std::size_t used = 0, shortened_used = 0;
  for (char32_t c : unicode::to_utf32(text)) {
    if (unicode::is_control(c)) c = U' ';
    used += static_cast<std::size_t>(utf8proc_charwidth(static_cast<utf8proc_int32_t>(c)));
    if (used > columns) return shortened + "..." + std::string(columns - 3 - shortened_used, ' ');
    unicode::append_utf8(fitted, c);
    if (used + 3 <= columns) {
      shortened = fitted;
      shortened_used = used;
    }
  }
  return fitted + std::string(columns - used, ' ');
}

void print_table_head(std::int64_t width) { fmt::print("{}  tokens  embedding ({} values)\n", fit_columns("text", text_columns), width); }

void print_table(std::span<const std::string> texts, std::span<const Embedding> embeddings) {
  constexpr std::size_t shown = 5;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    fmt::print("{}  {:>6} ", fit_columns(texts[i], text_columns), embeddings[i].ids.size());
    const auto values = std::span(embeddings[i].values);
    for (float value : values.first(std::min(shown, values.size()))) fmt::print(" {:>8.4f}", value);
    fmt::print("{}\n", values.size() > shown ? " ..." : "");
  }
}

void print_json(std::span<const std::string> texts, std::span<const Embedding> embeddings) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    fmt::print("{{\"text\":{},\"ids\":[{}],\"embedding\":{}}}\n", json_text(texts[i]), fmt::join(embeddings[i].ids, ","),
               json_numbers(embeddings[i].values));
  }
}

void print_similarity(std::span<const std::string> texts, std::span<const Embedding> embeddings) {
  if (texts.empty()) return;
  const Array matrix = similarity_matrix(embeddings);
  print_matrix(texts, matrix);
  const auto pairs = nearest_pairs(matrix);
  if (!pairs.empty()) fmt::print("\nnearest pairs\n");
  for (const SimilarPair& pair : pairs) {
    std::string second = fit_columns(texts[pair.second], text_columns);
    second.erase(second.find_last_not_of(' ') + 1);
    fmt::print("  {:.3f}  {}  {}\n", pair.similarity, fit_columns(texts[pair.first], text_columns), second);
  }
}

void print_similarity_json(std::span<const std::string> texts, std::span<const Embedding> embeddings) {
  const Array matrix = similarity_matrix(embeddings);
  std::vector<std::string> lines, rows, pairs;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    lines.push_back(json_text(texts[i]));
    rows.push_back(json_numbers(matrix.values<float>().subspan(i * texts.size(), texts.size())));
  }
  for (const SimilarPair& pair : nearest_pairs(matrix)) {
    pairs.push_back(fmt::format("{{\"first\":{},\"second\":{},\"similarity\":{}}}", pair.first, pair.second, json_number(pair.similarity)));
  }
  fmt::print("{{\"texts\":[{}],\"similarity\":[{}],\"nearest\":[{}]}}\n", fmt::join(lines, ","), fmt::join(rows, ","),
             fmt::join(pairs, ","));
}

}  // namespace rlx::command
