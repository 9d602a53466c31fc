#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors.h"
#include "models/flow.h"
#include "rlx/graph.h"

namespace rlx {

class Session;
struct DecoderFiles;

/// How far one output of a model is from its recording.
struct VerifiedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t compared = 0;  // elements; those of padding do not count
  double difference = 0;      // the largest; NaN when any difference is
  double allowed = 0;

  bool passed() const { return difference <= allowed; }
};

/// A model's folder with the inputs and outputs that another implementation recorded in expected.safetensors: `X` in f32 and, for some
/// outputs, `X_f64`. What f32 may differ by is told by the recording itself: ten times its own distance between f32 and f64
/// (the largest of the file, for outputs without an f64 recording). Language models may also have `prompt_ids` and `greedy_ids`, the prompt
/// and how the most likely tokens continue it.
class RecordedRun {
 public:
  /// Throws Error when the model's type is not supported, or a recorded tensor is no input or output of it or does not fit.
  static RecordedRun open(const std::filesystem::path& folder);
  /// The same for a model of another place, such as a GGUF file made from the folder's.
  static RecordedRun of_model(const std::filesystem::path& model, const std::filesystem::path& folder);

  const Graph& graph() const { return graph_; }
  const NamedArrays& weights() const { return weights_; }
  const NamedArrays& inputs() const { return inputs_; }

  /// Compares the value of every recorded output, which `output` gives by name.
  std::vector<VerifiedTensor> compare(const std::function<Array(std::string_view name)>& output) const;

 private:
  RecordedRun(Graph graph, NamedArrays weights, SafetensorsFile recorded)
      : graph_(std::move(graph)), weights_(std::move(weights)), recorded_(std::move(recorded)) {}

  static RecordedRun of_encoder(const DecoderFiles& model, const std::filesystem::path& folder);
  static RecordedRun of_decoder(const DecoderFiles& model, const std::filesystem::path& folder);
  static RecordedRun of_t5(const std::filesystem::path& model, const std::filesystem::path& folder);
  void read_input(const Input& input, std::int64_t ids);
  std::vector<std::string> recorded_outputs() const;
  bool counts(std::string_view name, const std::vector<std::int64_t>& shape, std::int64_t element) const;
  VerifiedTensor difference(std::string_view name, const Array& a, const Array& b) const;
  double recorded_distance(const std::string& name) const;

  Graph graph_;
  NamedArrays weights_;
  SafetensorsFile recorded_;
  NamedArrays inputs_;
};

/// Runs the model of `folder` on its recorded inputs. Of greedy_ids, generated token by token, none may differ.
std::vector<VerifiedTensor> verify_folder(const std::filesystem::path& folder, const Session& session);
/// The same for the model `model`, a GGUF file or another folder, with the recording of `folder`.
std::vector<VerifiedTensor> verify_model(const std::filesystem::path& model, const std::filesystem::path& folder, const Session& session);

}  // namespace rlx
