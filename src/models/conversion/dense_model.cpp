#include "models/conversion/dense_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/names.h"
#include "quant/block_format.h"

namespace rlx {
namespace {

constexpr std::int64_t dense_batch = 1 << 20;  // values, or one row: 4 MiB of f32

std::int64_t values_in(const TensorView& tensor) {
  std::int64_t values = 1;
  for (std::int64_t size : tensor.shape) values *= size;  // the reader checked it
  return values;
}

const BlockFormat& source_format(const TensorView& tensor, std::string_view file) {
  const BlockFormat* format = tensor.format ? tensor.format : find_block_format(safetensors_dtype_name(tensor.dtype));
  if (!format) fail("{}: tensor {}: {} cannot be converted", file, quote_name(tensor.name), name(tensor.dtype));
  return *format;
}

/// Values first..first + count of a tensor, which `blocks` hold, to the file.
void write_values(const TensorView& tensor, std::span<const std::byte> blocks, const BlockFormat& to, std::int64_t first,
                  std::int64_t count, std::string_view file, SafetensorsWriter& writer) {
  std::vector<float> values(static_cast<std::size_t>(count)), written(values.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * to.bytes));
  source_format(tensor, file).decode(blocks.data(), values.data(), count);
  to.encode(values.data(), nullptr, bytes.data(), count);
  to.decode(bytes.data(), written.data(), count);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i]) && !std::isfinite(written[i]))
      fail("{}: tensor {}: value {} is {}, which {} cannot hold", file, quote_name(tensor.name), first + static_cast<std::int64_t>(i),
           values[i], to.name);
  writer.write(bytes);
}

}  // namespace

void write_dense(const Checkpoint& checkpoint, const std::filesystem::path& target, DType dtype,
                 const std::function<void(std::size_t done, std::size_t total)>& progress) {
  const BlockFormat* to = find_block_format(safetensors_dtype_name(dtype));
  std::vector<TensorView> sources, targets;
  std::size_t total = 0, done = 0;
  for (const Checkpoint::File& file : checkpoint.files()) sources.insert(sources.end(), file.tensors.begin(), file.tensors.end());
  for (const TensorView& tensor : sources) {
    targets.push_back({tensor.name, is_float(tensor.dtype) ? dtype : tensor.dtype, tensor.shape, {}});
    total += static_cast<std::size_t>(values_in(tensor));
  }
  SafetensorsWriter writer(target, targets, {{"format", "pt"}});
  for (std::size_t i : writer.order()) {
    const TensorView& tensor = sources[i];
    const bool copied = tensor.dtype == targets[i].dtype && !is_packed(tensor);
    const std::int64_t rows = row_count(tensor), columns = values_in(tensor) / std::max<std::int64_t>(rows, 1);
    const std::int64_t batch = std::max<std::int64_t>(dense_batch / std::max<std::int64_t>(columns, 1), 1);
    std::vector<std::byte> made;
    for (std::int64_t first = 0; first < rows; first += batch) {
      const std::int64_t count = std::min(batch, rows - first);
      const auto bytes = row_bytes(tensor, first, count, made);
      if (copied) writer.write(bytes);
      else write_values(tensor, bytes, *to, first * columns, count * columns, checkpoint.name(), writer);
      done += static_cast<std::size_t>(count * columns);
      if (progress) progress(done, total);
    }
  }
  writer.commit();
}

}  // namespace rlx
