#include "models/folder_source.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/names.h"
#include "formats/checkpoint.h"
#include "models/decoder_family.h"
#include "models/encoder.h"
#include "models/families/gguf.h"
#include "models/families/gguf_encoder.h"
#include "models/gguf_config.h"
#include "models/gguf_vocabulary.h"
#include "models/model_folder.h"
#include "models/tensor_names.h"

namespace rlx {
namespace {

/// How rows of the file to be written are made of those that are there.
struct RowMaking {
  std::vector<TensorView> parts;  // of one shape, stacked
  bool transposed = false;
  std::int64_t head_size = 0;  // rows of each head are reordered; 0: they are not
  bool plus_one = false;
  bool negated_exp = false;    // a decay for its logarithm
  std::int64_t first_row = 0;  // those before it are left out
};

const BlockFormat& plain_format(const TensorView& tensor, std::string_view file) {
  const BlockFormat* format = find_block_format(safetensors_dtype_name(tensor.dtype));
  if (!format || !is_float(tensor.dtype))
    fail("{}: tensor {}: {} cannot be written to a GGUF file (allowed: F32, F16, BF16, F64)", file, quote_name(tensor.name),
         name(tensor.dtype));
  return *format;
}

class RowReader {
 public:
  RowReader(RowMaking making, std::shared_ptr<const Checkpoint> checkpoint)
      : making_(std::move(making)), checkpoint_(std::move(checkpoint)), format_(&plain_format(making_.parts.front(), checkpoint_->name())) {
    const auto& shape = making_.parts.front().shape;
    vector_ = shape.size() == 1;
    rows_ = vector_ ? 1 : (making_.transposed ? shape[1] : shape[0]) - making_.first_row;
    columns_ = vector_ || making_.transposed ? shape[0] : shape[1];
  }

  void operator()(std::int64_t first, std::int64_t count, float* values) const {
    for (std::int64_t row = first; row < first + count; ++row, values += columns_) {
      read_row(making_.parts[static_cast<std::size_t>(row / rows_)], row % rows_ + making_.first_row, values);
      if (making_.plus_one) std::for_each(values, values + columns_, [](float& value) { value += 1; });
      if (making_.negated_exp) std::for_each(values, values + columns_, [](float& value) { value = -std::exp(value); });
    }
  }

 private:
  void read_row(const TensorView& part, std::int64_t row, float* values) const {
    const std::byte* bytes = part.data.data();
    if (making_.transposed) {
      for (std::int64_t column = 0; column < columns_; ++column)
        format_->decode(bytes + (column * rows_ + row) * format_->bytes, values + column, 1);
    } else if (vector_ && making_.head_size > 0) {
      for (std::int64_t column = 0; column < columns_; ++column)
        format_->decode(bytes + row_of_halves(column, making_.head_size) * format_->bytes, values + column, 1);
    } else {
      const std::int64_t from = making_.head_size > 0 ? row_of_halves(row, making_.head_size) : row;
      format_->decode(bytes + from * columns_ * format_->bytes, values, columns_);
    }
  }

  RowMaking making_;
  std::shared_ptr<const Checkpoint> checkpoint_;  // keeps the bytes mapped
  const BlockFormat* format_;
  bool vector_ = false;
  std::int64_t rows_ = 0, columns_ = 0;  // of one part, as written
};

/// "layers.3.attention.q.weight", as a graph of the model calls it.
std::string param_name(const TensorName& name, std::string_view param) {
  return name.layer < 0 ? fmt::format("{}{}", param, name.ending) : fmt::format("layers.{}.{}{}", name.layer, param, name.ending);
}

class FolderReader {
 public:
  explicit FolderReader(const std::filesystem::path& path) : folder_(ModelFolder::open(path)), family_(gguf_family(folder_.model_type())) {
    const DecoderFamily* family = DecoderFamily::find(folder_.model_type());
    if (!family) fail_internal("the family {} is listed and not found", folder_.model_type());
    config_ = family->read(folder_.config());
    names_ = family->weight_names(config_);
    checkpoint_ = std::make_shared<const Checkpoint>(Checkpoint::open(path));
  }

  ModelSource read() {
    note_params();
    sort_tensors();
    check_params();
    ModelSource source;
    source.name = folder_.path().string();
    source.facts = {.layers = static_cast<std::int64_t>(config_.layers.size()),
                    .heads_per_kv_head = config_.kv_heads == 0 ? 0 : config_.heads / config_.kv_heads,
                    .experts = config_.experts.count};
    source.metadata.set("general.architecture", family_.architecture);
    source.metadata.set("general.type", "model");
    source.metadata.set("general.name", std::filesystem::weakly_canonical(folder_.path()).filename().string());
    describe_model(config_, family_, source.metadata);
    if (!config_.causal) describe_encoder(folder_, config_, family_, source.metadata);
    describe_tokenizer(folder_.path(), config_.vocab_size, source.metadata);
    add_rope_factors(source);
    for (const auto& [place, making] : targets_) source.tensors.push_back(tensor(place.name, place.parsed, making));
    return source;
  }

 private:
  /// A tensor of the file to be written; they follow the order of the layers.
  struct Target {
    std::string name;
    TensorName parsed;

    std::int64_t layer() const { return parsed.layer >= 0 ? parsed.layer : name.starts_with("output") ? INT64_MAX : -1; }
    bool operator<(const Target& other) const {
      return std::pair<std::int64_t, std::string_view>(layer(), name) <
             std::pair<std::int64_t, std::string_view>(other.layer(), other.name);
    }
  };

  bool has_params(const std::vector<std::string_view>& params) const {
    return std::any_of(names_.layer.begin(), names_.layer.end(), [&](const WeightName& line) { return line.params == params; });
  }

  /// Every tensor of the checkpoint at its place in the file to be written; the experts of a layer are one.
  void sort_tensors() {
    WeightNames gguf = gguf_names(has_params({"attention.q", "attention.k", "attention.v"}), has_params({"ffn.gate", "ffn.up"}));
    if (!config_.causal) add_gguf_encoder_names(gguf);
    std::vector<std::string> unknown;
    for (std::string_view name : checkpoint_->names()) {
      const auto parsed = parse_tensor_name(todays_name(name), names_);
      if (is_unused_tensor(name, names_) && !(parsed && is_wanted(*parsed))) continue;
      const auto target = parsed ? spell_tensor_name(as_written(*parsed), gguf) : std::nullopt;
      if (!target) {
        unknown.emplace_back(name);
        continue;
      }
      parts_[*target].emplace(parsed->expert.value_or(0), checkpoint_->at(name));
      parsed_.emplace(*target, *parsed);
      for (std::string_view param : parsed->params) covered_.insert(param_name(*parsed, param));
    }
    if (!unknown.empty())
      fail("{}: the architecture {} has no use for {} tensors: {}", checkpoint_->name(), family_.architecture, unknown.size(),
           some_names(unknown));
    for (const auto& [name, parsed] : parsed_) targets_.emplace(Target{name, parsed}, making(name, parsed));
  }

  static bool is_log_decay(const TensorName& parsed) { return parsed.params.front() == "state_space.log_decay"; }

  /// Files hold decays themselves.
  static TensorName as_written(TensorName parsed) {
    if (is_log_decay(parsed)) parsed.params = {"state_space.decay"};
    return parsed;
  }

  /// The name with an older spelling of its end replaced.
  std::string todays_name(std::string_view name) const {
    for (const auto& [older, today] : names_.endings)
      if (name.ends_with(older)) return fmt::format("{}{}", name.substr(0, name.size() - older.size()), today);
    return std::string(name);
  }

  bool is_wanted(const TensorName& parsed) const {
    return std::any_of(parsed.params.begin(), parsed.params.end(),
                       [&](std::string_view param) { return shapes_.contains(param_name(parsed, param)); });
  }

  RowMaking making(const std::string& name, const TensorName& parsed) const {
    RowMaking out;
    out.transposed = parsed.transposed && parsed.ending == ".weight";
    const bool turns = parsed.params.front() == "attention.q" || parsed.params.front() == "attention.k";
    if (turns && family_.neighbours_turn) out.head_size = config_.head_size;
    if (parsed.params.front() == "position_embedding") out.first_row = config_.first_position;
    out.plus_one = config_.norm.plus_one && parsed.params.front().ends_with("norm");
    const auto& parts = parts_.at(name);
    std::int64_t expected = 0;
    out.negated_exp = is_log_decay(parsed);
    for (const auto& [expert, stored] : parts) {
      const TensorView view = without_axes_of_one(stored);
      if (expert != expected++) fail("{}: of tensor {} expert {} is missing", checkpoint_->name(), quote_name(name), expected - 1);
      const TensorView first = without_axes_of_one(parts.begin()->second);
      if (view.shape != first.shape || view.dtype != first.dtype || view.shape.empty() || view.shape.size() > 2)
        fail("{}: tensor {}: {} (allowed: vectors and matrices, all experts alike)", checkpoint_->name(), quote_name(view.name),
             type_text(view.dtype, view.shape));
      out.parts.push_back(view);
    }
    return out;
  }

  /// Convolutions along a text are (C, 1, K) in a folder and (C, K) in a file.
  static TensorView without_axes_of_one(TensorView view) {
    if (view.shape.size() == 3) std::erase(view.shape, 1);
    return view;
  }

  SourceTensor tensor(const std::string& name, const TensorName& parsed, const RowMaking& making) const {
    const TensorView& part = making.parts.front();
    TensorView view{name, part.dtype, part.shape, {}, &plain_format(part, checkpoint_->name())};
    if (making.transposed) std::reverse(view.shape.begin(), view.shape.end());
    if (parsed.expert) view.shape.insert(view.shape.begin(), static_cast<std::int64_t>(making.parts.size()));
    check_shape(view, parsed);
    view.shape[0] -= making.first_row;
    const bool recurrent = name.find(".ssm_conv1d") != std::string::npos || name.find(".ssm_a") != std::string::npos;
    if (part.shape.size() == 1 || recurrent) view.dtype = f32, view.format = find_block_format("F32");
    const bool as_it_is = making.parts.size() == 1 && !making.transposed && making.head_size == 0 && !making.plus_one &&
                          !making.negated_exp && making.first_row == 0;
    if (as_it_is && view.dtype == part.dtype) view.data = part.data;
    return {std::move(view), RowReader(making, checkpoint_)};
  }

  static bool is_convolution(const std::vector<std::int64_t>& wanted, const std::vector<std::int64_t>& shape) {
    return wanted.size() == 3 && wanted[1] == 1 && shape == std::vector{wanted[0], wanted[2]};
  }

  void check_shape(const TensorView& view, const TensorName& parsed) const {
    if (parsed.params.size() != 1) return;
    const auto wanted = shapes_.find(param_name(parsed, parsed.params.front()));
    if (wanted != shapes_.end() && wanted->second != view.shape && !is_convolution(wanted->second, view.shape))
      fail("{}: tensor {} is {}, by config.json it must be {}", checkpoint_->name(), quote_name(view.name),
           type_text(view.dtype, view.shape), type_text(view.dtype, wanted->second));
  }

  /// The graph whose parameters are written: that of a model which continues texts, or encodes and perhaps scores them.
  Graph graph() const {
    if (config_.causal) return decoder_graph(config_, {.sequences = 1, .capacity = 8, .chunk = 8});
    Graph graph("encoder");
    const EncodedText text = encode_text(Flow(graph), config_, 1, 1);
    graph.output("states", text.states.back());
    if (config_.text_head.labels > 0) graph.output("scores", text_scores(Flow(graph), config_, text));
    return graph;
  }

  void note_params() {
    const Graph model = graph();
    for (const auto& [input, value] : model.inputs()) {
      if (input.kind != InputKind::param) continue;
      std::vector<std::int64_t>& shape = shapes_[input.name];
      for (const Dim& size : input.type.shape) shape.push_back(size.value());
    }
  }

  /// What the model's graph asks for must be there.
  void check_params() const {
    std::vector<std::string> missing;
    for (const auto& [name, shape] : shapes_)
      if (!covered_.contains(name)) missing.push_back(name);
    if (!missing.empty()) fail("{}: the checkpoint lacks {} tensors: {}", checkpoint_->name(), missing.size(), some_names(missing));
  }

  void add_rope_factors(ModelSource& source) const {
    if (config_.ropes.empty()) return;
    const RopeOptions& rope = config_.ropes.front();
    if (rope.scaling == RopeScaling::llama3) add_vector(source, "rope_freqs.weight", llama3_factors(rope));
    if (rope.scaling != RopeScaling::longrope) return;
    add_vector(source, "rope_factors_long.weight", {rope.long_factors.begin(), rope.long_factors.end()});
    add_vector(source, "rope_factors_short.weight", {rope.short_factors.begin(), rope.short_factors.end()});
  }

  static void add_vector(ModelSource& source, std::string name, std::vector<float> values) {
    const TensorView view{std::move(name), f32, {static_cast<std::int64_t>(values.size())}, {}, find_block_format("F32")};
    source.tensors.push_back(
        {view, [values = std::move(values)](std::int64_t, std::int64_t, float* out) { std::copy(values.begin(), values.end(), out); }});
  }

  ModelFolder folder_;
  const GgufFamily& family_;
  DecoderConfig config_;
  WeightNames names_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::map<std::string, std::map<std::int64_t, TensorView>> parts_;  // by the name to be written, then by expert
  std::map<std::string, TensorName> parsed_;
  std::map<Target, RowMaking> targets_;
  std::set<std::string> covered_;                            // parameters that some tensor holds
  std::map<std::string, std::vector<std::int64_t>> shapes_;  // of parameters
};

}  // namespace

ModelSource source_of_folder(const std::filesystem::path& folder) { return FolderReader(folder).read(); }

}  // namespace rlx
