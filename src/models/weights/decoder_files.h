#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/checkpoint.h"
#include "models/layers/decoder.h"
#include "models/weights/adapters.h"
#include "models/weights/t5_files.h"
#include "models/weights/weights.h"
#include "rlx/model.h"

namespace rlx {

class DecoderFamily;
class ModelFolder;

/// The family that reads the folder's config. Throws Error naming the model's type and those that are known.
const DecoderFamily& family_of(const ModelFolder& folder);

/// What the model in a folder or a GGUF file is, whose weights need not be there in a folder. Throws Error as DecoderFiles::open.
DecoderConfig read_description(const std::filesystem::path& path);

/// What a model's folder in Hugging Face's layout, or a GGUF file, says about a language model. Weights stay in their mapped files.
struct DecoderFiles {
  DecoderConfig config;
  WeightNames names;
  Checkpoint checkpoint;
  std::vector<std::int32_t> end_tokens = {};  // any of them ends an answer
  Adapters adapters = {};                     // of the model's matrices

  /// Throws Error naming the file and the field for what is missing, malformed or not supported.
  static DecoderFiles open(const std::filesystem::path& path, std::span<const Adapter> adapters = {});

  /// Throws Error naming the file for an encoder.
  void check_makes_text() const;
  std::int64_t trained_context() const { return config.max_positions; }
  /// The values of the parameters of a graph of this config; `threads` as for load_weights.
  NamedArrays weights(const Graph& graph, int threads) const {
    return load_weights(graph, checkpoint, names, threads, adapters.load(graph));
  }
  /// A graph of this config with those values.
  Executable compile(const Session& session, const Graph& graph) const;
};

/// A model that makes text of text: one that continues it, or an encoder with a decoder that answers it.
using LanguageModelFiles = std::variant<DecoderFiles, T5Files>;

/// Throws Error as DecoderFiles::open.
LanguageModelFiles open_language_model(const std::filesystem::path& path, std::span<const Adapter> adapters = {});
/// The files of a model that encodes texts, which may do so for a decoder (T5). Throws Error as DecoderFiles::open, and for a model that
/// continues texts.
LanguageModelFiles open_text_encoder(const std::filesystem::path& path, std::span<const Adapter> adapters = {});
/// Throws the Error of what such a model cannot do.
[[noreturn]] void refuse_encoder_decoder(const std::filesystem::path& path, std::string_view what);

}  // namespace rlx
