#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/weights/decoder_files.h"
#include "rlx/model.h"
#include "runtime/reports/memory_need.h"

namespace rlx {

/// Where all layers of a model are computed: by those sessions, and the rest by `session`. The last one also has what is behind the last
/// layer. Throws Error for more layers than the model has.
std::vector<LayersOn> all_layers_on(std::span<const LayersOn> layers_on, const Session& session, const DecoderConfig& config);

/// A decoder's graph, on one device or cut between its layers. Each part keeps its weights and caches where it is computed; of a run the
/// hidden states cross.
class DividedExecutable {
 public:
  /// Compiles it with the model's weights. `parts`: as all_layers_on gives them.
  DividedExecutable(std::span<const LayersOn> parts, const DecoderFiles& model, const Graph& graph);

  /// As of an Executable of the whole graph; of the outputs, those of the last part.
  Outputs run(std::map<std::string, Feed> inputs) const;
  Array state(std::string_view name) const { return parts_[part_with(name)].state(name); }
  void set_state(std::string_view name, Feed value) { parts_[part_with(name)].set_state(name, std::move(value)); }
  void copy_state_row(std::string_view name, std::int64_t from, std::int64_t to) { parts_[part_with(name)].copy_state_row(name, from, to); }
  /// Of the first part, which is all where there is but one.
  const Executable& first() const { return parts_.front(); }
  /// Of each part.
  const std::vector<MemoryNeed>& memory_needs() const { return needs_; }

 private:
  void add(const LayersOn& part, const DecoderFiles& model, const Graph& graph, const NamedArrays& weights);
  std::size_t part_with(std::string_view state) const;

  std::vector<Executable> parts_;
  std::vector<MemoryNeed> needs_;
  std::vector<std::vector<std::string>> inputs_;              // by part
  std::map<std::string, std::size_t, std::less<>> of_state_;  // the part
};

}  // namespace rlx
