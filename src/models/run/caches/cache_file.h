#pragma once
#include <filesystem>
#include <string>

#include "models/run/caches/cached_decoder.h"
#include "models/weights/decoder_files.h"
#include "rlx/io.h"
#include "rlx/precision.h"

namespace rlx {

/// Tells models apart whose caches are not each other's: their graphs, how their products are computed, and samples of their weights.
std::string cache_fingerprint(const DecoderFiles& model, Precision precision);

/// Writes what the decoder's cache holds as a safetensors file, atomically, with texts by names. Throws Error for an empty cache.
void write_cache(const std::filesystem::path& path, const CachedDecoder& decoder, const std::string& fingerprint, const Metadata& notes);
/// Replaces the decoder's cache; the texts that were written with it. Throws Error naming the file for one that is no cache, is of another
/// model, or does not fit; then nothing changes.
Metadata read_cache(const std::filesystem::path& path, CachedDecoder& decoder, const std::string& fingerprint);

}  // namespace rlx
