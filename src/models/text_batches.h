#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "models/decoder.h"
#include "rlx/session.h"

namespace rlx {

/// The tokens of a text or of a pair of texts.
struct TokenRow {
  std::span<const std::int32_t> ids;
  std::span<const std::int32_t> types = {};  // empty: all 0
};

/// Throws Error unless a graph may run with that many texts at a time.
void check_batch_size(std::int64_t texts);

/// Runs an encoder's graph, with the inputs of TextInputs, on texts padded to the longest.
Outputs run_rows(const Executable& executable, const DecoderConfig& encoder, std::span<const TokenRow> rows);

/// The same in batches of texts of like length, each of at most `batch_size`: `take` gets for each row what `output`, f32 (B, width), has
/// of it. `progress` is called after each batch.
void run_in_batches(const Executable& executable, const DecoderConfig& encoder, std::span<const TokenRow> rows, std::size_t batch_size,
                    std::string_view output, const std::function<void(std::size_t row, std::span<const float> values)>& take,
                    const std::function<void(std::size_t done, std::size_t total)>& progress);

}  // namespace rlx
