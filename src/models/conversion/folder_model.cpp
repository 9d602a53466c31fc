#include "models/conversion/folder_model.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "models/config/sentence_config.h"
#include "models/families/export/folder_config.h"
#include "models/families/export/same_model.h"
#include "models/families/gguf/gguf_decoder.h"
#include "models/layers/t5.h"
#include "models/weights/converted_tensors.h"
#include "models/weights/param_changes.h"
#include "models/weights/t5_files.h"

namespace rlx {
namespace {

constexpr std::string_view heads[] = {"lm_head",  "embed_out", "classifier",      "pre_classifier",   "head.",
                                      "decoder.", "cls.",      "vocab_transform", "vocab_layer_norm", "vocab_projector"};

FolderModel t5_folder(const GgufFile& file) {
  const T5Config config = read_gguf_t5(file);
  const Graph graph = t5_graph(config, {.batch = 1, .length = 1, .decoder_length = 1});
  const ModelForm from{graph, t5_gguf_names(config)}, to{graph, t5_weight_names()};
  json::Value json = t5_folder_config(config);
  write_token_ids(file, json);
  return {std::move(json), converted_tensors(std::make_shared<const Checkpoint>(Checkpoint::of(file)), from, to,
                                             [](const std::string& param) { return ParamChange{.param = param}; })};
}

/// The layers behind the pooling, whose tensors are among the file's.
void add_dense_modules(const GgufFile& file, const std::vector<SentenceDense>& layers, std::vector<FolderModule>& modules) {
  const ModelSource source = source_of(file);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const SentenceDense& layer = layers[i];
    FolderModule module{.kind = "Dense",
                        .config = {{"in_features", layer.in},
                                   {"out_features", layer.out},
                                   {"bias", layer.bias},
                                   {"activation_function", dense_activation_class(layer.activation)}}};
    for (const char* part : {"weight", "bias"})
      for (SourceTensor tensor : source.tensors)
        if (tensor.view.name == fmt::format("{}.{}", gguf_dense_names[i], part))
          tensor.view.name = fmt::format("linear.{}", part), module.tensors.push_back(std::move(tensor));
    modules.push_back(std::move(module));
  }
}

/// How a model that says how it pools makes vectors of texts.
void add_sentence_modules(const GgufFile& file, const DecoderConfig& encoder, FolderModel& out) {
  if (!names_pooling(file)) return;
  const SentenceModelConfig sentences = SentenceModelConfig::read(file, encoder);
  json::Value pooling{{"word_embedding_dimension", encoder.hidden_size}, {"pooling_mode", pooling_word(sentences.pooling.front())}};
  out.modules.push_back({.kind = "Pooling", .config = std::move(pooling)});
  add_dense_modules(file, sentences.dense, out.modules);
  if (sentences.normalize) out.modules.push_back({.kind = "Normalize"});
  out.others["sentence_bert_config.json"] = {{"max_seq_length", sentences.max_length}};
  if (!sentences.prompt.empty())
    out.others["config_sentence_transformers.json"] = {{"prompts", {{"default", sentences.prompt}}}, {"default_prompt_name", "default"}};
}

}  // namespace

std::string prefixed(std::string_view prefix, std::string_view name) {
  const bool is_head = std::ranges::any_of(heads, [&](std::string_view part) { return name.starts_with(part); });
  return fmt::format("{}{}", is_head ? std::string_view() : prefix, name);
}

FolderModel FolderModel::of(const GgufFile& file) {
  if (file.value("general.architecture").string() == "t5") return t5_folder(file);
  const DecoderConfig model = read_gguf_decoder(file);
  FolderConfig config = FolderConfig::of(file, model);
  DecoderConfig& there = config.model;
  if (!there.causal) there.output = model.output;
  const bool dense = !model.causal && file.find("cls.weight") != nullptr && !model.output;
  const ModelForm from{param_graph(model, dense), gguf_names(model, GgufLayout::of(file, model))};
  const ModelForm to{param_graph(there, dense), config.names};
  FolderModel out{std::move(config.json),
                  converted_tensors(std::make_shared<const Checkpoint>(Checkpoint::of(file)), from, to, changes_between(model, there))};
  for (SourceTensor& tensor : out.tensors) tensor.view.name = prefixed(config.prefix, tensor.view.name);
  add_sentence_modules(file, model, out);
  return out;
}

}  // namespace rlx
