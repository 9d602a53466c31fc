// Models in GGUF files: what metadata and the shapes of tensors say of sizes, layers and the tokenizer.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf_writer.h"
#include "formats/json/json.h"
#include "ir/verifier.h"
#include "models/api/model_summary.h"
#include "models/conversion/folder_model.h"
#include "models/conversion/model_source.h"
#include "models/families/gguf/gguf_decoder.h"
#include "models/layers/decoder.h"
#include "models/layers/t5.h"
#include "models/weights/t5_files.h"
#include "quant/block_format.h"
#include "rlx/error.h"
#include "text/tokenizer/files/gguf_tokenizer.h"
#include "text/tokenizer/files/tokenizer_files.h"

namespace {

using rlx::json::Value;

template <class T>
std::vector<T> elements(const Value& array) {
  std::vector<T> all;
  for (const Value& element : array) all.push_back(element.get<T>());
  return all;
}

void set_array(rlx::GgufMetadata& metadata, const std::string& key, const Value& array) {
  const auto all = [&](bool (Value::*is)() const noexcept) {
    return std::ranges::all_of(array, [&](const Value& v) { return (v.*is)(); });
  };
  if (all(&Value::is_boolean)) metadata.set_booleans(key, elements<bool>(array));
  else if (all(&Value::is_string)) metadata.set_strings(key, elements<std::string>(array));
  else if (all(&Value::is_number_integer)) metadata.set_numbers<std::int64_t>(key, elements<std::int64_t>(array));
  else if (all(&Value::is_number)) metadata.set_numbers<float>(key, elements<float>(array));
}

rlx::GgufMetadata metadata_of(const Value& object) {
  rlx::GgufMetadata metadata;
  for (const auto& [key, value] : object.items()) {
    if (value.is_boolean()) metadata.set(key, value.get<bool>());
    else if (value.is_number_integer()) metadata.set(key, value.get<std::int64_t>());
    else if (value.is_number()) metadata.set(key, value.get<float>());
    else if (value.is_string()) metadata.set(key, std::string_view(value.get_ref<const std::string&>()));
    else if (value.is_array()) set_array(metadata, key, value);
  }
  return metadata;
}

/// A GGUF file with the metadata, and f32 tensors of zeros with the shapes, of {"metadata": {key: value}, "tensors": {name: [size]}}.
std::string gguf_of(const Value& document) {
  const rlx::GgufMetadata metadata = metadata_of(document.at("metadata"));
  std::vector<rlx::TensorView> tensors;
  std::size_t bytes = 0;
  for (const auto& [name, shape] : document.at("tensors").items()) {
    if (!shape.is_array() || !std::ranges::all_of(shape, &Value::is_number_unsigned)) continue;
    tensors.push_back({name, rlx::f32, elements<std::int64_t>(shape), {}, rlx::find_block_format("F32")});
    const std::size_t size = rlx::block_bytes(*tensors.back().format, tensors.back().shape, name), unit = metadata.alignment();
    if (size > 1 << 20) return {};  // only its shape matters
    bytes += (size + unit - 1) / unit * unit;
  }
  return rlx::gguf_header(metadata, tensors, "fuzz.gguf") + std::string(bytes, '\0');
}

void use_tokenizer(const rlx::GgufFile& file) {
  const rlx::Tokenizer tokenizer = rlx::read_gguf_tokenizer(file);
  tokenizer.decode(tokenizer.encode_ids("  He\xCC\x81llo, <s> world 12\xF0\x9F"), false);
}

void use_decoder(const rlx::GgufFile& file) {
  const rlx::DecoderConfig config = rlx::read_gguf_decoder(file);
  rlx::gguf_names(config, rlx::GgufLayout::of(file, config));
  if (config.causal && config.layers.size() <= 4) rlx::verify(rlx::decoder_graph(config, {.capacity = 16, .chunk = 4}), "decoder_graph");
}

void use_t5(const rlx::GgufFile& file) {
  const rlx::T5Config config = rlx::read_gguf_t5(file);
  if (config.num_layers + config.num_decoder_layers <= 4)
    rlx::verify(rlx::t5_graph(config, {.batch = 2, .length = 8, .decoder_length = 8}), "t5_graph");
}

void choose_types(const rlx::GgufFile& file) {
  const rlx::ModelSource source = rlx::source_of(file);
  rlx::choose_types(rlx::find_type_mix("Q3_K_M"), source.views(), source.facts, {}, false);
}

}  // namespace

/// The input says what a GGUF file holds, as JSON. What is accepted, and is small, must give a sound graph and a tokenizer that works.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Value document = rlx::json::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (!document.is_object() || !document.value("metadata", Value()).is_object() || !document.value("tensors", Value()).is_object())
      return 0;
    const std::string bytes = gguf_of(document);
    const auto file = rlx::GgufFile::parse(std::as_bytes(std::span(bytes)), "fuzz.gguf");
    constexpr void (*uses[])(const rlx::GgufFile&) = {use_tokenizer,
                                                      use_decoder,
                                                      use_t5,
                                                      choose_types,
                                                      [](const rlx::GgufFile& f) { rlx::tokenizer_files(f); },
                                                      [](const rlx::GgufFile& f) { rlx::FolderModel::of(f); },
                                                      [](const rlx::GgufFile& f) { rlx::summarize(f); }};
    for (const auto use : uses) try {
        use(file);
      } catch (const rlx::Error&) {  // each says so of what it needs
      }
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
