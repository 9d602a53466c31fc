#pragma once
#include <cstdint>
#include <filesystem>
#include <span>

#include "models/layers/encoder.h"
#include "models/weights/decoder_files.h"
#include "models/weights/t5_files.h"

namespace rlx {

/// The files of a model that encodes texts, which may do so for a decoder (T5). Throws Error as DecoderFiles::open, and for a model that
/// continues texts.
LanguageModelFiles open_text_encoder(const std::filesystem::path& path, std::span<const Adapter> adapters = {});

/// The encoder of a T5 alone: EncodedText as of a description.
EncodedText encode_text(Flow flow, const T5Config& config, std::int64_t max_batch, std::int64_t max_length);

}  // namespace rlx
