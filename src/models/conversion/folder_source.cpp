#include "models/conversion/folder_source.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/names.h"
#include "formats/checkpoint.h"
#include "models/config/model_folder.h"
#include "models/config/rope_factors.h"
#include "models/config/sentence_config.h"
#include "models/conversion/gguf_vocabulary.h"
#include "models/conversion/source_check.h"
#include "models/families/decoder_family.h"
#include "models/families/export/folder_config.h"
#include "models/families/export/gguf_config.h"
#include "models/families/export/same_model.h"
#include "models/families/gguf/gguf_decoder.h"
#include "models/families/layer_name.h"
#include "models/layers/t5.h"
#include "models/weights/converted_tensors.h"
#include "models/weights/param_changes.h"
#include "models/weights/quantized/folder_weights.h"
#include "models/weights/sentence_dense.h"
#include "models/weights/t5_files.h"
#include "models/weights/tensor_names.h"
#include "quant/block_format.h"

namespace rlx {
namespace {

/// Where a tensor stands in a file: those of no layer come before all but the last ones.
std::int64_t order_of(std::string_view name) {
  if (const auto layer = gguf_layer(name)) return *layer;
  return name.starts_with("output") || name.starts_with("cls") ? std::numeric_limits<std::int64_t>::max() : -1;
}

/// Other readers compute with these in f32 only.
bool is_small(std::string_view name) {
  constexpr std::string_view parts[] = {".ssm_conv1d",   ".ssm_a",        ".ssm_d",      ".shortconv.conv", "_norm.",
                                        ".ffn_gate_inp", "position_embd", "token_types", ".attn_rel_b"};
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

/// Other readers have a last axis of one in some vectors, none within convolutions along a text, norms of groups as matrices, and matrices
/// of heads apart.
std::vector<std::int64_t> gguf_shape(std::string_view name, std::vector<std::int64_t> shape, const DecoderConfig& c) {
  const StateSpaceConfig& s = c.state_space;
  if (shape.size() == 3 && shape[1] == 1) shape.erase(shape.begin() + 1);
  if (name.ends_with(".attn_v_b.weight")) return {c.heads, shape[0] / c.heads, shape[1]};
  if (s.heads == 0 || shape.size() != 1) return shape;
  if (name.ends_with(".ssm_a") || name.ends_with(".ssm_d")) return {shape[0], 1};
  if (name.ends_with(".ssm_norm.weight")) return {s.groups, shape[0] / s.groups};
  return shape;
}

/// `values`: f32.
void add_array(ModelSource& source, std::string name, const Array& values) {
  const TensorView view{std::move(name), f32, values.shape(), {}, find_block_format("F32")};
  source.tensors.push_back({view, [values](std::int64_t first, std::int64_t count, float* out) {
                              const std::int64_t row = values.shape().back();
                              std::copy_n(values.values<float>().data() + first * row, count * row, out);
                            }});
}

void add_vector(ModelSource& source, std::string name, const std::vector<double>& wide) {
  const std::vector<float> values(wide.begin(), wide.end());
  add_array(source, std::move(name), Array::of<float>({static_cast<std::int64_t>(wide.size())}, values));
}

void add_rope_factors(const DecoderConfig& c, ModelSource& source) {
  if (c.ropes.empty()) return;
  const RopeOptions& rope = c.ropes.front();
  const std::vector<float> llama3 = rope.scaling == RopeScaling::llama3 ? llama3_factors(rope) : std::vector<float>();
  if (!llama3.empty()) add_vector(source, "rope_freqs.weight", {llama3.begin(), llama3.end()});
  if (rope.scaling != RopeScaling::longrope) return;
  add_vector(source, "rope_factors_long.weight", rope.long_factors);
  add_vector(source, "rope_factors_short.weight", rope.short_factors);
}

/// The tensors in the order of layers, with the shapes and types that other readers expect.
void add_tensors(std::vector<SourceTensor> tensors, const DecoderConfig& config, ModelSource& source) {
  std::ranges::sort(tensors, {}, [](const SourceTensor& tensor) { return std::pair(order_of(tensor.view.name), tensor.view.name); });
  for (SourceTensor& tensor : tensors) {
    TensorView& view = tensor.view;
    const bool vector = view.shape.size() == 1;
    const auto shape = gguf_shape(view.name, view.shape, config);
    if (shape.back() != view.shape.back())  // rows are of the new length
      tensor.read_rows = [read = tensor.read_rows, width = shape.back(), all = view.shape[0]](std::int64_t first, std::int64_t count,
                                                                                              float* out) {
        std::vector<float> values(static_cast<std::size_t>(all));
        read(0, 1, values.data());
        std::copy_n(values.data() + first * width, count * width, out);
      };
    view.shape = shape;
    const BlockFormat* const wide = find_block_format("F32");
    if ((vector || is_small(view.name)) && view.format != wide)
      view.dtype = f32, view.format = wide, view.data = {}, view.make_rows = nullptr;
    source.tensors.push_back(std::move(tensor));
  }
}

bool is_sentence_model(const ModelFolder& folder) {
  std::error_code error;
  return std::filesystem::exists(folder.path() / "modules.json", error);
}

ModelSource named_source(const ModelFolder& folder, std::string_view architecture) {
  ModelSource source;
  source.name = folder.path().string();
  source.metadata.set("general.architecture", architecture);
  source.metadata.set("general.type", "model");
  source.metadata.set("general.name", std::filesystem::weakly_canonical(folder.path()).filename().string());
  return source;
}

/// The folder's own form: its config, and which of the parameters of a head its tensors are.
struct FolderForm {
  DecoderConfig config;
  bool dense;  // there is the layer below a classifier
  ModelForm form;
};

FolderForm folder_form(const ModelFolder& folder, const DecoderFamily& family, const Checkpoint& checkpoint) {
  DecoderConfig c = family.read(folder.config());
  const WeightNames names = family.weight_names(c);
  const auto spelled = spelled_names(checkpoint.names(), names);
  const auto has = [&](std::string_view param) { return spelled.contains(place_of(param, 1, names).tensors.front()); };
  // What says words for masked ones is kept, except of a model that was made for whole texts: other readers may know no place for it.
  if (!c.causal) c.output = c.output && c.text_head.labels == 0 && has("head.norm.weight") && !is_sentence_model(folder);
  const bool dense = !c.causal && !c.output && has("classifier.dense.weight");  // which would stand where the other head's layer does
  Graph graph = param_graph(c, dense);
  return {std::move(c), dense, {std::move(graph), names}};
}

/// Every parameter must have a name in GGUF files.
void check_places(const ModelForm& form, const ModelFolder& folder, std::string_view architecture) {
  for (const auto& [input, value] : form.graph.inputs())
    if (input.kind == InputKind::param && !place_of(input.name, 1, form.names).listed)
      fail("{}: GGUF files of {} have no tensor for {}", folder.path().string(), architecture, quote_name(input.name));
}

/// The layers behind a sentence model's pooling, which have files of their own.
void add_dense_layers(const ModelFolder& folder, const DecoderConfig& c, std::string_view architecture, ModelSource& source) {
  if (!is_sentence_model(folder)) return;
  const std::vector<SentenceDense> layers = SentenceModelConfig::read(folder.path(), c).dense;
  if (layers.size() > gguf_dense_names.size())
    fail("{}: {} dense layers (GGUF files have names for {})", folder.path().string(), layers.size(), gguf_dense_names.size());
  const NamedArrays values = load_dense(layers);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string key = fmt::format("{}.{}", architecture, gguf_dense_names[i]);
    source.metadata.set(key + "_feat_in", static_cast<std::uint32_t>(layers[i].in));
    source.metadata.set(key + "_feat_out", static_cast<std::uint32_t>(layers[i].out));
    if (layers[i].activation != HiddenActivation::linear)
      source.metadata.set(key + "_activation", activation_name(layers[i].activation));  // ours: others know none
    for (const char* part : {"weight", "bias"})
      if (const auto found = values.find(fmt::format("dense.{}.{}", i, part)); found != values.end())
        add_array(source, fmt::format("{}.{}", gguf_dense_names[i], part), found->second);
  }
}

ModelSource decoder_source(const ModelFolder& folder) {
  const DecoderFamily* family = DecoderFamily::find(folder.model_type());
  if (!family) fail_internal("the family {} is listed and not found", folder.model_type());
  const auto checkpoint = std::make_shared<const Checkpoint>(open_weights(folder.path()));
  const FolderForm from = folder_form(folder, *family, *checkpoint);
  const DecoderConfig& c = from.config;
  const std::string_view architecture = gguf_architecture(folder.model_type(), c.causal);
  const DecoderConfig written = gguf_form(c, architecture);
  const ModelForm to{param_graph(written, from.dense), gguf_names(written, GgufLayout::of(architecture, written, from.form.names))};
  check_places(to, folder, architecture);
  ModelSource source = named_source(folder, architecture);
  source.facts = {.layers = static_cast<std::int64_t>(c.layers.size()),
                  .heads_per_kv_head = c.kv_heads == 0 ? 0 : c.heads / c.kv_heads,
                  .experts = c.experts.count,
                  .falcon = architecture == "falcon"};
  describe_model(written, architecture, source.metadata);
  const auto describe = c.causal ? describe_pooling : describe_encoder;
  describe(folder, written, architecture, source.metadata);
  add_rope_factors(written, source);
  const std::size_t factors = source.tensors.size();
  add_tensors(converted_tensors(checkpoint, from.form, to, changes_between(c, written)), written, source);
  if (!c.causal) add_dense_layers(folder, c, architecture, source);
  source.losses = describe_tokenizer(folder.path(), c.vocab_size, source.metadata);  // of as many tokens as the embeddings have rows
  check_source(source, factors, written);
  return source;
}

ModelSource t5_source(const ModelFolder& folder) {
  const T5Config config = T5Config::read(folder.config());
  const auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(folder.path()));
  const Graph graph = t5_graph(config, {.batch = 1, .length = 1, .decoder_length = 1});
  ModelSource source = named_source(folder, "t5");
  source.facts = {.layers = config.num_layers, .heads_per_kv_head = 1, .experts = 0};
  describe_t5(folder, config, source.metadata);
  const ModelForm from{graph, t5_weight_names(config, *checkpoint)}, to{graph, t5_gguf_names(config)};
  add_tensors(converted_tensors(checkpoint, from, to, [](const std::string& param) { return ParamChange{.param = param}; }), {}, source);
  DecoderConfig sizes;
  sizes.hidden_size = config.d_model, sizes.max_positions = config.n_positions;
  add_dense_layers(folder, sizes, "t5", source);
  source.losses = describe_tokenizer(folder.path(), config.vocab_size, source.metadata);  // of as many tokens as the embeddings have rows
  return source;
}

}  // namespace

ModelSource source_of_folder(const std::filesystem::path& path) {
  const ModelFolder folder = ModelFolder::open(path);
  return gguf_architecture(folder.model_type()) == "t5" ? t5_source(folder) : decoder_source(folder);
}

}  // namespace rlx
