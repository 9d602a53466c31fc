#include "models/conversion/model_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/names.h"

namespace rlx {
namespace {

/// A hyper-parameter of which a layer may have its own: the first layer's.
std::int64_t first_integer(const GgufFile& file, std::string_view key, std::int64_t otherwise) {
  const GgufValue* value = file.find_value(key);
  if (!value) return otherwise;
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (!value->is_array()) return value->integer(0, most);
  const auto all = value->integers(0, most);
  return all.empty() ? otherwise : all.front();
}

ModelFacts facts_of(const GgufFile& file) {
  const GgufValue* architecture = file.find_value("general.architecture");
  const std::string prefix = architecture ? std::string(architecture->string()) : "";
  const std::int64_t heads = first_integer(file, prefix + ".attention.head_count", 1);
  const std::int64_t kv_heads = first_integer(file, prefix + ".attention.head_count_kv", heads);
  return {.layers = first_integer(file, prefix + ".block_count", 0),
          .heads_per_kv_head = kv_heads == 0 ? 0 : heads / kv_heads,
          .experts = first_integer(file, prefix + ".expert_count", 0),
          .falcon = prefix == "falcon"};
}

}  // namespace

std::vector<TensorView> ModelSource::views() const {
  std::vector<TensorView> out;
  for (const SourceTensor& tensor : tensors) out.push_back(tensor.view);
  return out;
}

ModelSource source_of(const GgufFile& file) {
  ModelSource source{file.name(), {}, facts_of(file), {}};
  source.metadata.copy(file.metadata());
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) source.metadata.erase(key);
  for (const TensorView& tensor : file.tensors()) {
    const std::int64_t columns = tensor.shape.back();
    const std::int64_t row_bytes = columns / tensor.format->values * tensor.format->bytes;
    source.tensors.push_back({tensor, [file, tensor, columns, row_bytes](std::int64_t first, std::int64_t count, float* values) {
                                tensor.format->decode(tensor.data.data() + first * row_bytes, values, count * columns);
                              }});
  }
  return source;
}

}  // namespace rlx
