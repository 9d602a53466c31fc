#include "models/run/batches/text_batches.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "models/run/batches/batch_sizes.h"

namespace rlx {
namespace {

constexpr std::int64_t largest_batch = 4096;

/// Rows that are padded on the right to the longest of them: arrays (rows, longest).
struct PaddedRows {
  explicit PaddedRows(std::span<const TokenRow> rows) {
    for (const TokenRow& row : rows) longest = std::max(longest, std::ssize(row.ids));
    mask = Array(i32, {std::ssize(rows), longest});
    for (std::size_t i = 0; i < rows.size(); ++i) std::fill_n(at(mask, i), rows[i].ids.size(), 1);
  }
  std::int32_t* at(Array& array, std::size_t row) const {
    return array.mutable_values<std::int32_t>().data() + static_cast<std::ptrdiff_t>(row) * longest;
  }
  std::int64_t longest = 0;
  Array mask;  // 0 for padding
};

std::map<std::string, Feed> padded_inputs(TextForm form, std::span<const TokenRow> rows) {
  const PaddedRows padded(rows);
  Array ids(i32, padded.mask.shape()), types(i32, padded.mask.shape());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(rows[i].ids, padded.at(ids, i));
    std::ranges::copy(rows[i].types, padded.at(types, i));
  }
  std::map<std::string, Feed> inputs{{"input_ids", ids}, {"attention_mask", padded.mask}};
  if (form.types) inputs.emplace("token_type_ids", types);
  return inputs;
}

/// The rows' numbers, the longest row last.
std::vector<std::size_t> longest_last(std::span<const TokenRow> rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto longest = std::ranges::max_element(order, {}, [&](std::size_t i) { return rows[i].ids.size(); });
  if (longest != order.end()) std::swap(*longest, order.back());
  return order;
}

std::map<std::string, Feed> packed_inputs(TextForm form, std::span<const TokenRow> rows) {
  std::int64_t tokens = 0;
  for (const TokenRow& row : rows) tokens += std::ssize(row.ids);
  if (tokens > std::numeric_limits<std::int32_t>::max()) fail("{} texts have {} tokens: too many for one run", rows.size(), tokens);
  Array ids(i32, {tokens}), types(i32, {tokens}), begins(i32, {tokens}), ends(i32, {tokens}), first(i32, {std::ssize(rows)});
  std::int64_t at = 0;
  for (std::size_t i : longest_last(rows)) {
    const std::int64_t size = std::ssize(rows[i].ids);
    const auto part = [&](Array& of) { return of.mutable_values<std::int32_t>().subspan(static_cast<std::size_t>(at)).begin(); };
    std::ranges::copy(rows[i].ids, part(ids));
    std::ranges::copy(rows[i].types, part(types));
    std::fill_n(part(begins), size, static_cast<std::int32_t>(at));
    std::fill_n(part(ends), size, static_cast<std::int32_t>(size - 1));
    first.mutable_values<std::int32_t>()[i] = static_cast<std::int32_t>(at);
    at += size;
  }
  std::map<std::string, Feed> inputs{
      {"input_ids", ids}, {"text_begins", begins}, {"text_ends", ends}, {"first_tokens", first}, {"attention_mask", PaddedRows(rows).mask}};
  if (form.types) inputs.emplace("token_type_ids", types);
  return inputs;
}

}  // namespace

void check_batch_size(std::int64_t texts) {
  if (texts < 1 || texts > largest_batch) fail("batch size {} is not possible (allowed: 1..{})", texts, largest_batch);
}

void check_tokens(const DecoderConfig& encoder, const Encoding& tokens) {
  for (const std::int32_t id : tokens.ids)
    if (id >= encoder.vocab_size) fail("the tokenizer gives token {}, but the model's vocab_size is {}", id, encoder.vocab_size);
  for (const std::int32_t type : tokens.type_ids)
    if (encoder.token_types > 0 && type >= encoder.token_types)
      fail("the tokenizer gives tokens of type {}, but the model has {} types", type, encoder.token_types);
}

std::map<std::string, Feed> text_inputs(TextForm form, std::span<const TokenRow> rows) {
  return form.packed ? packed_inputs(form, rows) : padded_inputs(form, rows);
}

void run_in_batches(const Executable& executable, TextForm form, std::span<const TokenRow> rows, std::size_t batch_size,
                    std::string_view output, const std::function<void(std::size_t row, std::span<const float> values)>& take,
                    const std::function<void(std::size_t done, std::size_t total)>& progress) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Longest first: what memory there is to touch is touched at once, and the time that is left is never underestimated.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rows[a].ids.size() > rows[b].ids.size(); });
  std::vector<std::size_t> lengths;
  for (std::size_t row : order) lengths.push_back(rows[row].ids.size());
  std::size_t begin = 0;
  for (std::size_t size : form.packed ? even_sizes(lengths.size(), batch_size) : batch_sizes(lengths, batch_size)) {
    const auto batch = std::span(order).subspan(begin, size);
    std::vector<TokenRow> texts;
    for (std::size_t row : batch) texts.push_back(rows[row]);
    const Outputs outputs = executable.run(text_inputs(form, texts));
    const auto values = outputs.at(std::string(output)).values<float>();
    const std::size_t width = values.size() / size;
    for (std::size_t i = 0; i < size; ++i) take(batch[i], values.subspan(i * width, width));
    begin += size;
    if (progress) progress(begin, order.size());
  }
}

}  // namespace rlx
