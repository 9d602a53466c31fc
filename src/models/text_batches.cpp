#include "models/text_batches.h"

#include <algorithm>
#include <numeric>

#include "models/batching.h"

namespace rlx {
namespace {

constexpr std::int64_t largest_batch = 4096;

}  // namespace

void check_batch_size(std::int64_t texts) {
  if (texts < 1 || texts > largest_batch) fail("batch size {} is not possible (allowed: 1..{})", texts, largest_batch);
}

Outputs run_rows(const Executable& executable, const DecoderConfig& encoder, std::span<const TokenRow> rows) {
  std::size_t longest = 0;
  for (const TokenRow& row : rows) longest = std::max(longest, row.ids.size());
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(longest)};
  Array ids(i32, shape), mask(i32, shape), types(i32, shape);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(i * longest);
    std::ranges::copy(rows[i].ids, ids.mutable_values<std::int32_t>().begin() + begin);
    std::ranges::copy(rows[i].types, types.mutable_values<std::int32_t>().begin() + begin);
    std::fill_n(mask.mutable_values<std::int32_t>().begin() + begin, rows[i].ids.size(), 1);
  }
  std::map<std::string, Feed> inputs{{"input_ids", ids}, {"attention_mask", mask}};
  if (encoder.token_types > 0) inputs.emplace("token_type_ids", types);
  return executable.run(inputs);
}

void run_in_batches(const Executable& executable, const DecoderConfig& encoder, std::span<const TokenRow> rows, std::size_t batch_size,
                    std::string_view output, const std::function<void(std::size_t row, std::span<const float> values)>& take,
                    const std::function<void(std::size_t done, std::size_t total)>& progress) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Longest first: what memory there is to touch is touched at once, and the time that is left is never underestimated.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rows[a].ids.size() > rows[b].ids.size(); });
  std::vector<std::size_t> lengths;
  for (std::size_t row : order) lengths.push_back(rows[row].ids.size());
  std::size_t begin = 0;
  for (std::size_t size : batch_sizes(lengths, batch_size)) {
    const auto batch = std::span(order).subspan(begin, size);
    std::vector<TokenRow> texts;
    for (std::size_t row : batch) texts.push_back(rows[row]);
    const Outputs outputs = run_rows(executable, encoder, texts);
    const auto values = outputs.at(std::string(output)).values<float>();
    const std::size_t width = values.size() / size;
    for (std::size_t i = 0; i < size; ++i) take(batch[i], values.subspan(i * width, width));
    begin += size;
    if (progress) progress(begin, order.size());
  }
}

}  // namespace rlx
