#include "models/verify.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/bert.h"
#include "models/model_folder.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx {
namespace {

constexpr std::string_view f64_ending = "_f64";

/// The states of the first text after each layer: (layers + 1, S, H).
Value states_of_row0(const Values& states) {
  Values rows;
  for (Value state : states) rows.push_back(slice_axis(state, 0, 0, 1));
  return concat(rows, 0);
}

Graph bert_graph(const BertConfig& config, std::int64_t batch, std::int64_t length) {
  Graph graph("bert");
  const TextInputs inputs = TextInputs::declare(graph, batch, length);
  const Values states = bert_hidden_states(Flow(graph), config, inputs);
  graph.output("last_hidden_state", states.back());
  graph.output("pooler_output", bert_pooler(Flow(graph), config, states.back()));
  graph.output("hidden_states_row0", states_of_row0(states));
  return graph;
}

/// Batch and length of the recorded input_ids.
std::pair<std::int64_t, std::int64_t> recorded_size(const SafetensorsFile& recorded, std::int64_t max_length) {
  const TensorView& ids = recorded.at("input_ids");
  if (ids.shape.size() != 2 || ids.shape[0] < 1 || ids.shape[1] < 1 || ids.shape[1] > max_length) {
    fail("{}: tensor 'input_ids' is {} (allowed: two axes, with 1..{} tokens)", recorded.name(), type_text(ids.dtype, ids.shape),
         max_length);
  }
  return {ids.shape[0], ids.shape[1]};
}

}  // namespace

RecordedRun RecordedRun::open(const std::filesystem::path& folder) {
  const ModelFolder model = ModelFolder::open(folder);
  model.check_model_type("bert");
  const BertConfig config = BertConfig::read(model.config());
  SafetensorsFile recorded = SafetensorsFile::open(folder / "expected.safetensors");
  const auto [batch, length] = recorded_size(recorded, config.max_position_embeddings);
  Graph graph = bert_graph(config, batch, length);
  // The recording's own file is no shard of the model, so the weights are asked for by name.
  NamedArrays weights = load_weights(graph, Checkpoint::open(folder / "model.safetensors"), bert_weight_names());
  RecordedRun run(graph, std::move(weights), std::move(recorded));
  const std::map<std::string, std::int64_t> ids{
      {"input_ids", config.vocab_size}, {"attention_mask", 2}, {"token_type_ids", config.type_vocab_size}};
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind == InputKind::input) run.read_input(input, ids.at(input.name));
  }
  run.recorded_outputs();
  return run;
}

void RecordedRun::read_input(const Input& input, std::int64_t ids) {
  const Array recorded = recorded_.array(input.name);
  if (!is_integer(recorded.dtype()) || recorded.shape() != recorded_.at("input_ids").shape) {
    fail("{}: tensor {} is {} (allowed: integers in the shape of input_ids)", recorded_.name(), quote_name(input.name),
         type_text(recorded.dtype(), recorded.shape()));
  }
  Array values(i32, recorded.shape());
  for (std::int64_t i = 0; i < values.size(); ++i) {
    const std::int64_t id = recorded.get_int(i);
    if (id < 0 || id >= ids)
      fail("{}: tensor {}: element {} is {} (allowed: 0..{})", recorded_.name(), quote_name(input.name), i, id, ids - 1);
    values.set_int(i, id);
  }
  inputs_.emplace(input.name, values);
}

/// The names of the outputs that were recorded in f32; throws Error for a tensor that is nothing of the model's.
std::vector<std::string> RecordedRun::recorded_outputs() const {
  std::vector<std::string> known, found;
  for (const auto& [name, value] : graph_.outputs()) known.push_back(name);
  for (const TensorView& tensor : recorded_.tensors()) {
    if (inputs_.contains(tensor.name)) continue;
    const bool f64_twin = tensor.name.ends_with(f64_ending);
    const std::string name = f64_twin ? tensor.name.substr(0, tensor.name.size() - f64_ending.size()) : tensor.name;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail("{}: tensor {} is no output of the model (allowed: {})", recorded_.name(), quote_name(name), fmt::join(known, ", "));
    }
    if (!f64_twin) found.push_back(name);
  }
  if (found.empty()) fail("{}: no output is recorded (allowed: {})", recorded_.name(), fmt::join(known, ", "));
  return found;
}

/// False for what belongs to padding. Outputs with an axis of tokens are (B, S, ...), or (layers, S, ...) of the first text.
bool RecordedRun::counts(std::string_view name, const std::vector<std::int64_t>& shape, std::int64_t element) const {
  if (shape.size() < 3) return true;
  const Array& mask = inputs_.at("attention_mask");
  const std::int64_t length = mask.shape()[1];
  std::int64_t inner = 1;
  for (std::size_t axis = 2; axis < shape.size(); ++axis) inner *= shape[axis];
  const std::int64_t token = element / inner % length;
  const std::int64_t text = name.ends_with("_row0") ? 0 : element / inner / length;
  return mask.get_int(text * length + token) != 0;
}

/// The largest difference of two values of one output, with nothing allowed yet.
VerifiedTensor RecordedRun::difference(std::string_view name, const Array& a, const Array& b) const {
  if (a.shape() != b.shape()) {
    fail("{}: tensor {} is {} (the model's is {})", recorded_.name(), quote_name(name), type_text(b.dtype(), b.shape()),
         type_text(a.dtype(), a.shape()));
  }
  VerifiedTensor result{.name = std::string(name), .shape = a.shape()};
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (!counts(name, a.shape(), i)) continue;
    ++result.compared;
    const double distance = std::abs(a.get_double(i) - b.get_double(i));
    if (!(distance <= result.difference)) result.difference = distance;  // NaN stays: nothing compares with it
    if (std::isnan(result.difference)) break;
  }
  return result;
}

/// Between the f32 and the f64 recording of an output; 0 where there is no f64 recording.
double RecordedRun::recorded_distance(const std::string& name) const {
  const std::string twin = name + std::string(f64_ending);
  return recorded_.find(twin) ? difference(name, recorded_.array(name), recorded_.array(twin)).difference : 0;
}

std::vector<VerifiedTensor> RecordedRun::compare(const std::function<Array(std::string_view name)>& output) const {
  const auto names = recorded_outputs();
  double largest = 0;
  for (const std::string& name : names) largest = std::max(largest, recorded_distance(name));
  if (!(largest > 0)) fail("{}: nothing is recorded in both f32 and f64, which would tell what may differ", recorded_.name());
  std::vector<VerifiedTensor> results;
  for (const std::string& name : names) {
    const std::string twin = name + std::string(f64_ending);
    const bool exact = recorded_.find(twin) != nullptr;
    VerifiedTensor result = difference(name, output(name), recorded_.array(exact ? twin : name));
    result.allowed = 10 * (exact ? recorded_distance(name) : largest);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<VerifiedTensor> verify_folder(const std::filesystem::path& folder, const Session& session) {
  const RecordedRun run = RecordedRun::open(folder);
  Executable executable = session.compile(run.graph());
  executable.set_params(run.weights());
  std::map<std::string, Feed> feeds;
  for (const auto& [name, value] : run.inputs()) feeds.emplace(name, value);
  const Outputs outputs = executable.run(feeds);
  return run.compare([&](std::string_view name) { return outputs.at(name); });
}

}  // namespace rlx
