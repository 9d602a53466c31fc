#include "models/run/recorded_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/config/model_folder.h"
#include "models/families/decoder_family.h"
#include "models/layers/decoder_step.h"
#include "models/layers/encoder.h"
#include "models/layers/t5.h"
#include "models/run/caches/cached_decoder.h"
#include "models/weights/decoder_files.h"
#include "models/weights/t5_files.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

constexpr std::string_view f64_ending = "_f64", recording = "expected.safetensors";

/// An encoder that gives what was recorded of it.
Graph encoder_graph(const DecoderFiles& model, const SafetensorsFile& recorded, std::int64_t batch, std::int64_t length) {
  Graph graph("encoder");
  Flow flow(graph, f32, stored_types(model.checkpoint, model.names));
  const EncodedText text = encode_text(flow, model.config, batch, length);
  graph.output("last_hidden_state", text.states.back());
  graph.output("hidden_states_row0", states_of_first(text.states));
  if (recorded.find("pooler_output")) graph.output("pooler_output", text_vector(flow, model.config, text));
  if (model.config.text_head.labels > 0) graph.output("logits", text_scores(flow, model.config, text));
  else if (model.config.output && recorded.find("logits")) graph.output("logits", token_logits(flow, model.config, text));
  return graph;
}

Graph encoder_graph(const T5Files& model, std::int64_t batch, std::int64_t length) {
  Graph graph("t5_encoder");
  const Flow flow(graph, f32, stored_types(model.checkpoint, model.names));
  const EncodedText text = encode_text(flow, model.config, batch, length);
  graph.output("last_hidden_state", text.states.back());
  graph.output("hidden_states_row0", states_of_first(text.states));
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

/// The most tokens that a decoder was given, or had said in the end.
std::int64_t answer_length(const SafetensorsFile& recorded, std::int64_t batch) {
  const TensorView &target = recorded.at("decoder_input_ids"), *greedy = recorded.find("greedy_ids");
  if (target.shape.size() != 2 || target.shape[0] != batch || target.shape[1] < 1)
    fail("{}: tensor 'decoder_input_ids' is {} (allowed: {} rows)", recorded.name(), type_text(target.dtype, target.shape), batch);
  return std::max(target.shape[1], greedy != nullptr && !greedy->shape.empty() ? greedy->shape.back() : 0);
}

bool is_state(const Graph& graph, std::string_view name) {
  const auto& inputs = graph.inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](const auto& each) { return each.first.name == name; });
}

std::vector<std::int32_t> recorded_ids(const SafetensorsFile& recorded, std::string_view name) {
  const Array ids = recorded.array(name);
  if (!is_integer(ids.dtype()) || ids.size() < 1)
    fail("{}: tensor {} is {} (allowed: integers, at least one)", recorded.name(), quote_name(name), type_text(ids.dtype(), ids.shape()));
  std::vector<std::int32_t> result;
  for (std::int64_t i = 0; i < ids.size(); ++i)
    result.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(ids.get_int(i), -1, std::numeric_limits<std::int32_t>::max())));
  return result;
}

/// The tokens that the model says after `prompt`, one by one through its cache, until there are `count` of both.
std::vector<std::int32_t> continued(const DecoderFiles& model, const Session& session, const std::vector<std::int32_t>& prompt,
                                    std::size_t count) {
  CachedDecoder decoder(session, model, {.context = static_cast<std::int64_t>(count)});
  std::vector<std::int32_t> ids = prompt;
  std::vector<float> logits = decoder.append(prompt);
  while (true) {
    ids.push_back(greedy_choice(logits));
    if (ids.size() >= count) return ids;
    logits = decoder.append(std::span(ids).last(1));
  }
}

/// The same of an encoder and decoder, for the first of the recorded texts.
std::vector<std::int32_t> continued(const RecordedRun& run, const Session& session, std::vector<std::int32_t> ids, std::size_t count) {
  Executable executable = session.compile(run.graph());
  executable.set_params(run.weights());
  const auto first_row = [&](const char* name) {
    const Array& all = run.inputs().at(name);
    const auto row = all.values<std::int32_t>().first(static_cast<std::size_t>(all.shape()[1]));
    return Array::of<std::int32_t>({1, all.shape()[1]}, row);
  };
  const Array text = first_row("input_ids"), mask = first_row("attention_mask");
  while (ids.size() < count) {
    const Array said = Array::of<std::int32_t>({1, static_cast<std::int64_t>(ids.size())}, ids);
    const Array logits = executable.run({{"input_ids", text}, {"attention_mask", mask}, {"decoder_input_ids", said}}).at("logits");
    ids.push_back(greedy_choice(logits.values<float>().last(static_cast<std::size_t>(logits.shape()[2]))));
  }
  return ids;
}

/// Continues a prompt until there are `count` tokens.
using Continue = std::function<std::vector<std::int32_t>(const std::vector<std::int32_t>& prompt, std::size_t count)>;

/// How many of the recorded greedy_ids differ from the model's own.
std::optional<VerifiedTensor> verify_greedy(const std::filesystem::path& folder, const Continue& model) {
  const SafetensorsFile recorded = SafetensorsFile::open(folder / recording);
  if (!recorded.find("greedy_ids") || !recorded.find("prompt_ids")) return std::nullopt;
  const auto prompt = recorded_ids(recorded, "prompt_ids"), greedy = recorded_ids(recorded, "greedy_ids");
  if (greedy.size() <= prompt.size() || !std::equal(prompt.begin(), prompt.end(), greedy.begin()))
    fail("{}: greedy_ids do not continue prompt_ids", recorded.name());
  const auto own = model(prompt, greedy.size());
  VerifiedTensor result{.name = "greedy_ids", .shape = recorded.at("greedy_ids").shape};
  result.compared = static_cast<std::int64_t>(greedy.size() - prompt.size());
  for (std::size_t i = 0; i < greedy.size(); ++i) result.difference += own[i] != greedy[i];
  return result;
}

}  // namespace

RecordedRun RecordedRun::of_model(const std::filesystem::path& path, const std::filesystem::path& folder, int threads) {
  const ModelFolder recorded = ModelFolder::open(folder);
  if (recorded.model_type() == "t5") return of_t5(path, folder, threads);
  if (!DecoderFamily::find(recorded.model_type()))
    recorded.check_model_type(fmt::format("t5, {}", fmt::join(DecoderFamily::model_types(), ", ")));
  const DecoderFiles model = DecoderFiles::open(path);
  return model.config.causal ? of_decoder(model, folder, threads) : of_encoder(model, folder, threads);
}

RecordedRun RecordedRun::of_t5(const std::filesystem::path& path, const std::filesystem::path& folder, int threads) {
  const T5Files model = T5Files::open(path);
  SafetensorsFile recorded = SafetensorsFile::open(folder / recording);
  const auto [batch, length] = recorded_size(recorded, std::numeric_limits<std::int32_t>::max());
  const bool decodes = recorded.find("decoder_input_ids") != nullptr;
  const Graph graph = decodes ? t5_graph(model.config, {.batch = batch, .length = length, .decoder_length = answer_length(recorded, batch)},
                                         stored_types(model.checkpoint, model.names))
                              : encoder_graph(model, batch, length);
  const WeightNames names = decodes ? model.names : model.encoder_names();
  RecordedRun run(graph, load_weights(graph, model.checkpoint, names, threads), std::move(recorded));
  run.assume_inputs({{"attention_mask", 1}});
  const std::int64_t words = model.config.vocab_size;
  run.read_inputs({{"input_ids", words}, {"attention_mask", 2}, {"decoder_input_ids", words}});
  run.recorded_outputs();
  return run;
}

RecordedRun RecordedRun::of_encoder(const DecoderFiles& model, const std::filesystem::path& folder, int threads) {
  SafetensorsFile recorded = SafetensorsFile::open(folder / recording);
  const auto [batch, length] = recorded_size(recorded, model.config.max_positions);
  const Graph graph = encoder_graph(model, recorded, batch, length);
  RecordedRun run(graph, model.weights(graph, threads), std::move(recorded));
  run.assume_inputs({{"attention_mask", 1}, {"token_type_ids", 0}});
  run.read_inputs({{"input_ids", model.config.vocab_size}, {"attention_mask", 2}, {"token_type_ids", model.config.token_types}});
  run.recorded_outputs();
  return run;
}

RecordedRun RecordedRun::of_decoder(const DecoderFiles& model, const std::filesystem::path& folder, int threads) {
  SafetensorsFile recorded = SafetensorsFile::open(folder / recording);
  const auto [batch, length] = recorded_size(recorded, model.config.max_positions);
  // Of models without attention, the recorded states begin behind the first layer.
  const bool attention = std::any_of(model.config.layers.begin(), model.config.layers.end(),
                                     [](const DecoderLayer& layer) { return is_attention(layer.mixer); });
  const HiddenStates states = attention ? HiddenStates::with_embeddings : HiddenStates::without_embeddings;
  Graph graph = decoder_graph(model.config, {.sequences = batch, .capacity = length, .chunk = length, .hidden_states = states});
  RecordedRun run(graph, model.weights(graph, threads), std::move(recorded));
  Array rows(i32, {batch, length}), context(i32, {});
  for (std::int64_t i = 0; i < rows.size(); ++i) rows.set_int(i, i % length);
  context.set_int(0, length);
  for (const auto& [input, value] : graph.inputs()) {
    if (input.name == "input_ids") run.read_input(input, model.config.vocab_size);
    if (input.name == "past") run.inputs_.emplace(input.name, Array(i32, {batch}));
    if (input.name == "rows") run.inputs_.emplace(input.name, rows);
    if (input.name == "mask") run.inputs_.emplace(input.name, token_mask(batch, length));
    if (input.name == "context") run.inputs_.emplace(input.name, context);
  }
  run.recorded_outputs();
  return run;
}

void RecordedRun::read_inputs(const std::map<std::string, std::int64_t>& ids) {
  for (const auto& [input, value] : graph_.inputs())
    if (input.kind == InputKind::input && !inputs_.contains(input.name)) read_input(input, ids.at(input.name));
}

void RecordedRun::assume_inputs(const std::map<std::string, std::int64_t>& values) {
  for (const auto& [name, value] : values) {
    const auto is_it = [&](const auto& each) { return each.first.name == name; };
    if (recorded_.find(name) || std::ranges::none_of(graph_.inputs(), is_it)) continue;
    Array all(i32, recorded_.at("input_ids").shape);
    for (std::int64_t i = 0; i < all.size(); ++i) all.set_int(i, value);
    inputs_.emplace(name, all);
  }
}

void RecordedRun::read_input(const Input& input, std::int64_t ids) {
  const Array recorded = recorded_.array(input.name);
  const bool target = input.name == "decoder_input_ids";  // has a length of its own, which was checked
  if (!is_integer(recorded.dtype()) || (!target && recorded.shape() != recorded_.at("input_ids").shape)) {
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
  for (const auto& [name, value] : graph_.outputs())
    if (!is_state(graph_, name)) known.push_back(name);
  for (const TensorView& tensor : recorded_.tensors()) {
    if (inputs_.contains(tensor.name) || tensor.name == "prompt_ids" || tensor.name == "greedy_ids") continue;
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
  const auto found = inputs_.find("attention_mask");
  if (shape.size() < 3 || found == inputs_.end()) return true;
  const Array& mask = found->second;
  if (inputs_.contains("decoder_input_ids") && name != "encoder_last_hidden_state")
    return true;  // tokens of a decoder, which has no padding
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

/// Of a recorded output's elements that count, by magnitude.
double RecordedRun::largest(const std::string& name) const {
  const Array values = recorded_.array(name);
  return difference(name, values, Array(f32, values.shape())).difference;
}

/// Between the f32 and the f64 recording of an output; 0 where there is no f64 recording. As it says what may differ, one that rounding
/// does not explain is an Error: a number was altered, which would allow anything.
double RecordedRun::recorded_distance(const std::string& name) const {
  const std::string twin = name + std::string(f64_ending);
  if (!recorded_.find(twin)) return 0;
  const double distance = difference(name, recorded_.array(name), recorded_.array(twin)).difference;
  constexpr double most = 1e-3;  // of the largest number; models of f32 are within 1e-4
  if (const double allowed = most * largest(name); !(distance <= allowed))
    fail("{}: tensors {} and {} are {:.3g} apart, so they are not of one run (allowed: {:.3g})", recorded_.name(), quote_name(name),
         quote_name(twin), distance, allowed);
  return distance;
}

std::vector<VerifiedTensor> RecordedRun::compare(const std::function<Array(std::string_view name)>& output) const {
  const auto names = recorded_outputs();
  double relative = 0;
  for (const std::string& name : names)
    if (const double distance = recorded_distance(name), size = largest(name); distance > 0 && size > 0)
      relative = std::max(relative, distance / size);
  if (!(relative > 0)) fail("{}: nothing is recorded in both f32 and f64, which would tell what may differ", recorded_.name());
  std::vector<VerifiedTensor> results;
  for (const std::string& name : names) {
    const std::string twin = name + std::string(f64_ending);
    const bool exact = recorded_.find(twin) != nullptr;
    VerifiedTensor result = difference(name, output(name), recorded_.array(exact ? twin : name));
    result.allowed = 10 * (exact ? recorded_distance(name) : relative * largest(name));
    results.push_back(std::move(result));
  }
  return results;
}

namespace {

std::vector<VerifiedTensor> verify_run(const RecordedRun& run, const Session& session) {
  Executable executable = session.compile(run.graph());
  executable.set_params(run.weights());
  std::map<std::string, Feed> feeds;
  for (const auto& [name, value] : run.inputs()) feeds.emplace(name, value);
  const Outputs outputs = executable.run(feeds);
  return run.compare([&](std::string_view name) { return outputs.at(name); });
}

}  // namespace

std::vector<VerifiedTensor> verify_folder(const std::filesystem::path& folder, const Session& session) {
  return verify_model(folder, folder, session);
}

std::vector<VerifiedTensor> verify_model(const std::filesystem::path& model, const std::filesystem::path& folder, const Session& session) {
  const RecordedRun run = RecordedRun::of_model(model, folder, session.threads());
  const bool encodes_first = run.inputs().contains("decoder_input_ids");
  auto results = verify_run(run, session);
  const auto greedy = verify_greedy(folder, [&](const auto& prompt, std::size_t count) {
    return encodes_first ? continued(run, session, prompt, count) : continued(DecoderFiles::open(model), session, prompt, count);
  });
  if (greedy) results.push_back(*greedy);
  return results;
}

}  // namespace rlx
