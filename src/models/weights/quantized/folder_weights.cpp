#include "models/weights/quantized/folder_weights.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "base/names.h"
#include "models/config/model_folder.h"
#include "models/weights/quantized/scheme.h"

namespace rlx {
namespace {

using quantized::QuantizedModule;
using quantized::Scheme;

using MakeScheme = std::unique_ptr<Scheme> (*)(const JsonField& config);

constexpr std::array<std::pair<std::string_view, MakeScheme>, 5> methods{{{"gptq", quantized::gptq_scheme},
                                                                          {"awq", quantized::awq_scheme},
                                                                          {"fp8", quantized::float8_scheme},
                                                                          {"fbgemm_fp8", quantized::float8_scheme},
                                                                          {"compressed-tensors", quantized::compressed_tensors_scheme}}};

/// What belongs to activations and caches, which are rounded by rules of our own.
constexpr std::array<std::string_view, 7> of_activations{"input_scale", "input_scale_ub", "activation_scale", "output_scale",
                                                         "q_scale",     "k_scale",        "v_scale"};

std::unique_ptr<Scheme> scheme_of(const JsonField& config) {
  const JsonField method = config.at("quant_method");
  const auto* const found = std::ranges::find(methods, method.as_string(), [](const auto& each) { return each.first; });
  if (found != methods.end()) return found->second(config);
  std::string known;
  for (const auto& [name, make] : methods) known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  method.refuse("{} is not supported (supported: {})", quote_name(method.as_string()), known);
}

std::string_view without_ending(std::string_view name) { return name.substr(0, name.rfind('.')); }

bool is_named(std::string_view name, std::span<const std::string_view> endings) {
  const std::size_t dot = name.rfind('.');
  return dot != std::string_view::npos && std::ranges::count(endings, name.substr(dot + 1)) > 0;
}

/// The tensors with those of each quantized matrix replaced by the matrix.
Checkpoint with_matrices(Checkpoint stored, const Scheme& scheme) {
  const auto checkpoint = std::make_shared<const Checkpoint>(std::move(stored));
  std::set<std::string, std::less<>> layers;
  for (const Checkpoint::File& file : checkpoint->files())
    for (const TensorView& tensor : file.tensors)
      if (scheme.is_codes(tensor)) layers.emplace(without_ending(tensor.name));
  std::vector<Checkpoint::File> files;
  for (const Checkpoint::File& file : checkpoint->files()) {
    auto tensors =
        std::make_shared<std::pair<std::shared_ptr<const Checkpoint>, std::vector<TensorView>>>(checkpoint, std::vector<TensorView>());
    for (const TensorView& tensor : file.tensors) {
      const bool is_part = is_named(tensor.name, scheme.others()) && layers.contains(without_ending(tensor.name));
      if (scheme.is_codes(tensor))
        tensors->second.push_back(scheme.matrix(QuantizedModule(checkpoint, std::string(without_ending(tensor.name)))));
      else if (!is_part && !is_named(tensor.name, of_activations)) tensors->second.push_back(tensor);
    }
    const std::span<const TensorView> all = tensors->second;
    files.push_back({file.name, all, std::move(tensors)});
  }
  return Checkpoint::of(checkpoint->name(), std::move(files));
}

}  // namespace

Checkpoint open_weights(const std::filesystem::path& path) {
  Checkpoint stored = Checkpoint::open(path);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error) || !std::filesystem::exists(path / "config.json", error)) return stored;
  const ConfigFile file = ConfigFile::open(path / "config.json");
  const auto config = file.root().find("quantization_config");
  return config ? with_matrices(std::move(stored), *scheme_of(*config)) : stored;
}

bool is_idle_bias(const Checkpoint& checkpoint, std::string_view tensor) {
  if (!tensor.ends_with(".bias")) return false;
  const TensorView* const matrix = checkpoint.find(fmt::format("{}.weight", without_ending(tensor)));
  return matrix != nullptr && matrix->make_rows &&
         std::ranges::all_of(checkpoint.at(tensor).data, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace rlx
