#include "models/conversion/adapter_writer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_writer.h"
#include "base/names.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/json/json.h"
#include "formats/tensors/safetensors.h"
#include "models/conversion/folder_model.h"
#include "models/weights/adapters.h"
#include "models/weights/model_forms.h"
#include "models/weights/param_changes.h"
#include "models/weights/tensor_names.h"
#include "quant/block_format.h"
#include "rlx/io.h"

namespace rlx {
namespace {

/// What an adapter adds to some rows of a tensor.
struct Part {
  LowRankChange change;
  RowRange rows;
};

using Changes = std::map<std::string, LowRankChange>;  // by the names of a form's tensors

/// b with each of its columns multiplied, in f32.
template <class Factor>
Array scaled(const Array& b, Factor factor) {
  Array result(f32, b.shape());
  const std::int64_t rank = b.shape().back();
  for (std::int64_t i = 0; i < b.size(); ++i) result.set_double(i, b.get_double(i) * factor(i / rank));
  return result;
}

/// One of the matrices of a stack.
Array matrix_of(const Array& stack, std::int64_t index) {
  const std::size_t bytes = stack.bytes().size() / static_cast<std::size_t>(stack.shape()[0]);
  return {stack.dtype(),
          {stack.shape()[1], stack.shape()[2]},
          stack.bytes().subspan(static_cast<std::size_t>(index) * bytes, bytes),
          stack.owner()};
}

/// Puts the values of `from` into `to` at a place; `row` says where a row goes.
template <class Row>
void put(const Array& from, Array& to, Row row, std::int64_t column) {
  const std::int64_t columns = from.shape()[1];
  for (std::int64_t i = 0; i < from.size(); ++i) to.set_double(row(i / columns) * to.shape()[1] + column + i % columns, from.get_double(i));
}

/// The change of a tensor whose rows the parts share: factors (in, of all parts one below the other) and (out, a block for each part).
/// Parts that read the same share their rank.
LowRankChange joined(const std::vector<Part>& parts, const std::string& tensor) {
  if (parts.size() == 1 && parts[0].rows.count == parts[0].rows.of) return parts[0].change;
  std::vector<std::int64_t> first;  // of each part among the ranks of all
  std::int64_t rank = 0;
  for (const Part& part : parts) {
    if (part.change.stacked() || part.change.embedding) fail("the changes of {} cannot be joined to one", quote_name(tensor));
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const Part& each) { return each.change.a == part.change.a; });
    const auto index = static_cast<std::size_t>(same - parts.begin());
    first.push_back(index < first.size() ? first[index] : std::exchange(rank, rank + part.change.rank()));
  }
  LowRankChange result{Array(f32, {rank, parts[0].change.a.shape()[1]}), Array(f32, {parts[0].rows.of, rank})};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [change, rows] = parts[i];
    put(change.a, result.a, [&](std::int64_t row) { return first[i] + row; }, 0);
    put(
        scaled(change.b, [&](std::int64_t) { return change.scale; }), result.b, [&](std::int64_t row) { return rows.in_tensor(row); },
        first[i]);
  }
  return result;
}

/// Turns the factors that a graph got into changes of a form's tensors.
class TensorChanges {
 public:
  TensorChanges(const Graph& graph, NamedArrays factors, const WeightNames& names)
      : graph_(graph), factors_(std::move(factors)), names_(names) {}

  Changes collect() {
    constexpr std::string_view ending = ".lora_b";
    for (const auto& [name, b] : factors_)
      if (name.ends_with(ending)) add(name.substr(0, name.size() - ending.size()), b);
    Changes changes;
    for (const auto& [tensor, parts] : parts_) changes.emplace(tensor, joined(parts, tensor));
    return changes;
  }

 private:
  void add(const std::string& stem, const Array& b) {
    const auto rows = factors_.find(stem + ".lora_rows");
    const bool embedding = rows != factors_.end();
    const Array &a = embedding ? rows->second : factors_.at(stem + ".lora_a"), &scales = factors_.at(stem + ".lora_scale");
    const std::int64_t experts = b.rank() == 3 ? b.shape()[0] : 1, rank = b.shape().back();
    const auto scale_of = [&](std::int64_t expert) { return scales.get_double(expert * rank); };
    const TensorPlace place = place_of(stem + ".weight", experts, names_);
    const std::int64_t outputs = b.shape()[b.shape().size() - 2];
    const RowRange range = range_of(graph_, stem + ".weight", outputs, place);
    if (!place.stacked && experts == 1) return add(place.tensors[0], {{a, b, scale_of(0), embedding}, range});
    if (!place.stacked) return add(place.tensors[0], {{a, scaled(b, [&](std::int64_t row) { return scale_of(row / outputs); })}, range});
    for (std::int64_t e = 0; e < experts; ++e)
      if (scale_of(e) != 0)  // else the adapter does not know this expert
        add(place.tensors[static_cast<std::size_t>(e)], {{matrix_of(a, e), matrix_of(b, e), scale_of(e)}, range});
  }
  void add(const std::string& tensor, Part part) { parts_[tensor].push_back(std::move(part)); }

  const Graph& graph_;
  NamedArrays factors_;
  const WeightNames& names_;
  std::map<std::string, std::vector<Part>> parts_;
};

/// An adapter as one of the forms has it.
struct Converted {
  std::string architecture, prefix;
  double alpha;
  Changes changes;
};

/// What alpha says must be in the second factors where it cannot.
void say_by_alpha(Converted& adapter) {
  const LowRankChange& first = adapter.changes.begin()->second;
  adapter.alpha = first.scale == 0 ? 1 : first.scale * static_cast<double>(first.rank());
  constexpr double rounding = 1e-9;  // of divisions and products in f64, and of scales in f32 to one that f32 can say
  for (auto& [tensor, change] : adapter.changes) {
    const double factor = change.scale * static_cast<double>(change.rank()) / adapter.alpha;
    if (std::abs(factor - 1) > rounding) change.b = scaled(change.b, [&](std::int64_t) { return factor; });
  }
}

Converted converted(const std::filesystem::path& adapter, const std::filesystem::path& base, bool to_file) {
  const DecoderFiles model = DecoderFiles::open(base, std::vector<Adapter>{{adapter}});
  if (!model.config.causal) fail("{}: the model encodes texts (supported: adapters of models that continue them)", base.string());
  const ModelForms forms = ModelForms::of(base, model);
  AdapterFile file = AdapterFile::open(adapter);
  const bool from_file = !file.architecture.empty();
  const auto form = [&](bool of_file) {
    return of_file ? std::pair(&forms.gguf, &forms.names_in_gguf) : std::pair(&forms.folder, &forms.names_in_folder);
  };
  const auto [from, from_names] = form(from_file);
  const auto [to, to_names] = form(to_file);
  Adapters adapters;
  adapters.add(std::move(file), 1, {*from_names, from_file == to_file ? ParamChanges() : changes_between(*from, *to)});
  const Graph graph = decoder_graph(*to, {.capacity = 1, .chunk = 1, .adapters = adapters.forms()});
  Converted result{architecture_of(base, model), std::string(forms.names_in_folder.prefix), 1,
                   TensorChanges(graph, adapters.load(graph), *to_names).collect()};
  if (result.changes.empty()) fail("{}: the adapter changes nothing: its scale is 0", adapter.string());
  say_by_alpha(result);
  return result;
}

TensorView gguf_view(const std::string& name, const Array& array) {
  TensorView view = view_of(name, array);
  view.format = find_block_format(safetensors_dtype_name(array.dtype()));
  return view;
}

}  // namespace

void write_gguf_adapter(const std::filesystem::path& adapter, const std::filesystem::path& base, const std::filesystem::path& target) {
  const Converted from = converted(adapter, base, true);
  GgufMetadata metadata;
  metadata.set("general.architecture", from.architecture);
  metadata.set("general.type", "adapter");
  metadata.set("adapter.type", "lora");
  metadata.set("general.name", std::filesystem::weakly_canonical(adapter).stem().string());
  metadata.set("adapter.lora.alpha", static_cast<float>(from.alpha));
  std::vector<TensorView> tensors;
  for (const auto& [tensor, change] : from.changes) {
    tensors.push_back(gguf_view(tensor + ".lora_a", change.a));
    tensors.push_back(gguf_view(tensor + ".lora_b", change.b));
  }
  GgufWriter writer(target, metadata, tensors);
  for (const TensorView& tensor : tensors) writer.write(tensor.data);
  writer.commit();
}

std::vector<std::filesystem::path> write_adapter_folder(const std::filesystem::path& adapter, const std::filesystem::path& base,
                                                        const std::filesystem::path& folder) {
  const Converted from = converted(adapter, base, false);
  const std::int64_t rank = from.changes.begin()->second.rank();
  json::Value ranks = json::Value::object(), modules = json::Value::array();
  NamedArrays arrays;
  for (const auto& [tensor, change] : from.changes) {
    if (change.stacked()) fail("{}: {} is a stack of matrices, which folders of PEFT's do not change", base.string(), quote_name(tensor));
    const std::string module = prefixed(from.prefix, tensor.substr(0, tensor.rfind(".weight"))), name = "base_model.model." + module;
    modules.push_back(module);
    if (change.rank() != rank) ranks[module] = change.rank();
    arrays.emplace(name + (change.embedding ? ".lora_embedding_A" : ".lora_A.weight"),
                   change.embedding ? transposed_matrix(change.a) : change.a);
    arrays.emplace(name + (change.embedding ? ".lora_embedding_B" : ".lora_B.weight"), change.b);
  }
  const json::Value config{{"peft_type", "LORA"},
                           {"task_type", "CAUSAL_LM"},
                           {"base_model_name_or_path", base.string()},
                           {"inference_mode", true},
                           {"bias", "none"},
                           {"r", rank},
                           {"lora_alpha", from.alpha},
                           {"lora_dropout", 0.0},
                           {"rank_pattern", ranks},
                           {"alpha_pattern", json::Value::object()},
                           {"target_modules", modules}};
  const MadeFolder made(folder);
  std::vector<std::filesystem::path> written{folder / "adapter_config.json", folder / "adapter_model.safetensors"};
  FileWriter text(written[0]);
  text.write(config.dump(2) + "\n");
  text.finish();
  save_safetensors(written[1], arrays, {{"format", "pt"}});
  text.commit();
  return written;
}

}  // namespace rlx
