#include "models/weights/adapter_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/names.h"
#include "formats/checkpoint.h"
#include "models/weights/peft_config.h"
#include "models/weights/tensor_names.h"

namespace rlx {
namespace {

/// The halves of changes, by the name of the tensor that each is of.
struct Halves {
  std::map<std::string, Array> a, b;
  std::vector<std::string> others;  // tensors that are neither

  std::map<std::string, Array>& of(bool second) { return second ? b : a; }
};

/// Whether a and b are matrices, or stacks of as many, that agree on the rank.
bool fits(const LowRankChange& change) {
  const auto &a = change.a.shape(), &b = change.b.shape();
  if (a.size() != b.size() || a.size() < 2 || a.size() > 3 || (change.embedding && a.size() != 2)) return false;
  if (change.stacked() && a[0] != b[0]) return false;
  return change.rank() > 0 && (change.embedding ? a.back() : a[a.size() - 2]) == change.rank();
}

/// Pairs the halves. `scale_of` gives the scale of a change by the tensor's name and the rank, `is_embedding` says what a tensor holds.
template <class ScaleOf, class IsEmbedding>
void pair_halves(AdapterFile& file, const Halves& halves, ScaleOf scale_of, IsEmbedding is_embedding) {
  std::vector<std::string> alone, unlike;
  for (const auto& [tensor, b] : halves.b)
    if (!halves.a.contains(tensor)) alone.push_back(tensor);
  for (const auto& [tensor, a] : halves.a) {
    const auto b = halves.b.find(tensor);
    if (b == halves.b.end()) {
      alone.push_back(tensor);
      continue;
    }
    LowRankChange change{a, b->second, 1, is_embedding(tensor)};
    if (!is_float(a.dtype()) || !is_float(b->second.dtype()) || !fits(change)) {
      unlike.push_back(
          fmt::format("{} ({} and {})", tensor, type_text(a.dtype(), a.shape()), type_text(change.b.dtype(), change.b.shape())));
      continue;
    }
    change.scale = scale_of(tensor, change.rank());
    file.changes.emplace(tensor, std::move(change));
  }
  if (!alone.empty()) fail("{}: one of the two matrices is missing for {}", file.name, some_names(alone));
  if (!unlike.empty()) fail("{}: the two matrices do not agree for {} (needed: (rank, in) and (out, rank))", file.name, some_names(unlike));
  if (!halves.others.empty())
    fail("{}: tensors that are no part of a low-rank change: {} (supported: LoRA's two matrices)", file.name, some_names(halves.others));
  if (file.changes.empty()) fail("{}: the adapter changes nothing: it has no tensors", file.name);
}

/// `name` without its end, if that is `ending`.
std::optional<std::string_view> without(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return std::nullopt;
  return name.substr(0, name.size() - ending.size());
}

constexpr std::string_view peft_prefix = "base_model.model.";

/// Sorts a tensor of PEFT by its name, "base_model.model.MODULE.lora_A.weight".
void sort_peft_tensor(const Checkpoint& checkpoint, std::string_view name, Halves& halves, std::vector<std::string>& embeddings) {
  std::string_view rest = name;
  if (rest.starts_with(peft_prefix)) rest.remove_prefix(peft_prefix.size());
  if (rest.ends_with(".base_layer.weight") || rest.ends_with(".base_layer.bias")) return;  // the model's own, which PEFT adds to some files
  for (const bool second : {false, true}) {
    if (const auto module = without(rest, second ? ".lora_B.weight" : ".lora_A.weight")) {
      halves.of(second).emplace(fmt::format("{}.weight", *module), checkpoint.array(name));
      return;
    }
    if (const auto module = without(rest, second ? ".lora_embedding_B" : ".lora_embedding_A")) {
      const Array array = checkpoint.array(name);
      embeddings.push_back(fmt::format("{}.weight", *module));
      halves.of(second).emplace(embeddings.back(), second || array.rank() != 2 ? array : transposed_matrix(array));
      return;
    }
  }
  halves.others.emplace_back(name);
}

AdapterFile open_peft(const std::filesystem::path& folder) {
  const PeftConfig config = PeftConfig::open(folder / "adapter_config.json");
  const std::filesystem::path weights = folder / "adapter_model.safetensors";
  std::error_code error;
  if (!std::filesystem::exists(weights, error))
    fail("{}: no adapter_model.safetensors in this folder (adapters in other files are not read)", folder.string());
  const Checkpoint checkpoint = Checkpoint::open(weights);
  AdapterFile file{weights.string(), ""};
  Halves halves;
  std::vector<std::string> embeddings;
  for (std::string_view name : checkpoint.names()) sort_peft_tensor(checkpoint, name, halves, embeddings);
  pair_halves(
      file, halves,
      [&](std::string_view tensor, std::int64_t rank) {
        return config.scale_of(without(tensor, ".weight").value_or(tensor), rank, weights.string());
      },
      [&](const std::string& tensor) { return std::find(embeddings.begin(), embeddings.end(), tensor) != embeddings.end(); });
  return file;
}

void check_gguf_kind(const GgufFile& gguf) {
  const auto check = [&](const char* key, std::string_view needed) {
    const GgufValue* value = gguf.find_value(key);
    const std::string_view seen = value != nullptr ? value->string() : std::string_view();
    if (seen != needed) fail("{}: {} is {} (needed for an adapter: '{}')", gguf.name(), key, quote_name(seen), needed);
  };
  check("general.type", "adapter");
  check("adapter.type", "lora");
  if (gguf.find_value("adapter.alora.invocation_tokens") != nullptr)
    fail("{}: the adapter begins where certain tokens stand (aLoRA), which is not supported", gguf.name());
}

}  // namespace

AdapterFile AdapterFile::of(const GgufFile& gguf) {
  check_gguf_kind(gguf);
  AdapterFile file{gguf.name(), std::string(gguf.value("general.architecture").string())};
  const double alpha = gguf.value("adapter.lora.alpha").number();
  if (!std::isfinite(alpha)) fail("{}: key 'adapter.lora.alpha' is {} (allowed: finite numbers)", gguf.name(), alpha);
  Halves halves;
  for (const TensorView& tensor : gguf.tensors()) {
    const auto a = without(tensor.name, ".lora_a"), b = without(tensor.name, ".lora_b");
    if (a || b) halves.of(b.has_value()).emplace(a ? *a : *b, gguf.array(tensor.name));
    else halves.others.push_back(tensor.name);
  }
  // An alpha of 0 stands for none, as llama.cpp has it.
  pair_halves(
      file, halves, [&](std::string_view, std::int64_t rank) { return alpha == 0 ? 1 : alpha / static_cast<double>(rank); },
      [](std::string_view tensor) { return tensor == "token_embd.weight"; });
  return file;
}

bool is_adapter(const GgufFile& file) {
  const GgufValue* type = file.find_value("general.type");
  return type != nullptr && type->type() == GgufType::string && type->string() == "adapter";
}

bool is_adapter_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path / "adapter_config.json", error) && !std::filesystem::exists(path / "config.json", error);
}

AdapterFile AdapterFile::open(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return of(GgufFile::open(path));
  if (!std::filesystem::is_directory(path, error)) fail("{}: no adapter (a folder of PEFT's or a GGUF file is needed)", path.string());
  if (!std::filesystem::exists(path / "adapter_config.json", error))
    fail("{}: no adapter_config.json in this folder (expected an adapter as PEFT writes it)", path.string());
  return open_peft(path);
}

}  // namespace rlx
