#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensors/safetensors.h"
#include "models/layers/flow.h"
#include "rlx/graph.h"
#include "rlx/verify.h"

namespace rlx {

struct DecoderFiles;

/// A model with the inputs and outputs that another implementation recorded, as `verify_folder` reads them.
class RecordedRun {
 public:
  /// Throws Error when the model's type is not supported, or a recorded tensor is no input or output of it or does not fit.
  static RecordedRun open(const std::filesystem::path& folder) { return of_model(folder, folder, 0); }
  /// The same for a model of another place, such as a GGUF file made from the folder's; `threads` as for load_weights.
  static RecordedRun of_model(const std::filesystem::path& model, const std::filesystem::path& folder, int threads);

  const Graph& graph() const { return graph_; }
  const NamedArrays& weights() const { return weights_; }
  const NamedArrays& inputs() const { return inputs_; }

  /// Compares the value of every recorded output, which `output` gives by name.
  std::vector<VerifiedTensor> compare(const std::function<Array(std::string_view name)>& output) const;

 private:
  RecordedRun(Graph graph, NamedArrays weights, SafetensorsFile recorded)
      : graph_(std::move(graph)), weights_(std::move(weights)), recorded_(std::move(recorded)) {}

  static RecordedRun of_encoder(const DecoderFiles& model, const std::filesystem::path& folder, int threads);
  static RecordedRun of_decoder(const DecoderFiles& model, const std::filesystem::path& folder, int threads);
  static RecordedRun of_t5(const std::filesystem::path& model, const std::filesystem::path& folder, int threads);
  /// What was not recorded of these inputs, where the model reads them, has that value everywhere.
  void assume_inputs(const std::map<std::string, std::int64_t>& values);
  /// The other inputs. `ids`: for each, how many numbers its elements may be, from 0 on.
  void read_inputs(const std::map<std::string, std::int64_t>& ids);
  void read_input(const Input& input, std::int64_t ids);
  std::vector<std::string> recorded_outputs() const;
  bool counts(std::string_view name, const std::vector<std::int64_t>& shape, std::int64_t element) const;
  VerifiedTensor difference(std::string_view name, const Array& a, const Array& b) const;
  double recorded_distance(const std::string& name) const;
  double largest(const std::string& name) const;

  Graph graph_;
  NamedArrays weights_;
  SafetensorsFile recorded_;
  NamedArrays inputs_;
};

}  // namespace rlx
