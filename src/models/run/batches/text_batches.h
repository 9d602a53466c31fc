#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "models/layers/encoder.h"
#include "rlx/sentence_encoder.h"
#include "rlx/session.h"
#include "text/tokenizer/encoding.h"

namespace rlx {

/// Throws Error unless a graph may run with that many texts at a time.
void check_batch_size(std::int64_t texts);

/// Throws Error for a token, or a type of one, that the encoder does not have.
void check_tokens(const DecoderConfig& encoder, const Encoding& tokens);

/// The inputs of an encoder's graph of that form for texts, at least one, of one token and more each.
std::map<std::string, Feed> text_inputs(TextForm form, std::span<const TokenRow> rows);

/// Runs the graph on texts in batches of at most `batch_size`, of like length where they are padded: `take` gets for each row what
/// `output`, f32 (B, width), has of it. `progress` is called after each batch.
void run_in_batches(const Executable& executable, TextForm form, std::span<const TokenRow> rows, std::size_t batch_size,
                    std::string_view output, const std::function<void(std::size_t row, std::span<const float> values)>& take,
                    const std::function<void(std::size_t done, std::size_t total)>& progress);

}  // namespace rlx
