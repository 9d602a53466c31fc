#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "base/files/file_writer.h"
#include "base/names.h"
#include "formats/json/json.h"
#include "formats/tensors/safetensors.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data is written as it lies in memory");

constexpr std::size_t header_alignment = 8;
constexpr std::size_t max_header_bytes = 100'000'000;

/// Bytes of each tensor.
std::vector<std::size_t> sizes_of(std::span<const TensorView> tensors, std::string_view file) {
  std::set<std::string_view> names;
  std::vector<std::size_t> sizes;
  for (const TensorView& tensor : tensors) {
    const std::string what = fmt::format("{}: tensor {}", file, quote_name(tensor.name));
    if (tensor.name == "__metadata__") fail("{}: this name is reserved by the format", what);
    if (!names.insert(tensor.name).second) fail("{}: the name is given twice", what);
    if (safetensors_dtype_name(tensor.dtype).empty()) fail("{}: safetensors has no dtype for {}", what, name(tensor.dtype));
    sizes.push_back(static_cast<std::size_t>(dense_bytes(tensor.dtype, tensor.shape, what)));
  }
  return sizes;
}

/// Indices in the order of the data: falling element size keeps every tensor aligned without padding, which the format forbids.
std::vector<std::size_t> data_order(std::span<const TensorView> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(-info(tensors[a].dtype).bits, a) < std::pair(-info(tensors[b].dtype).bits, b);
  });
  return order;
}

std::string header_of(std::span<const TensorView> tensors, const std::vector<std::size_t>& sizes, const std::vector<std::size_t>& order,
                      const Metadata& metadata, std::string_view file) {
  std::vector<std::size_t> begins(tensors.size());
  std::size_t end = 0;
  for (std::size_t i : order) end = (begins[i] = end) + sizes[i];
  std::vector<std::string> pairs, entries;
  for (const auto& [key, value] : metadata) pairs.push_back(json::quote(key, file) + ":" + json::quote(value, file));
  if (!pairs.empty()) entries.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(pairs, ",")));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    entries.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", json::quote(tensors[i].name, file),
                                  safetensors_dtype_name(tensors[i].dtype), fmt::join(tensors[i].shape, ","), begins[i],
                                  begins[i] + sizes[i]));
  std::string header = fmt::format("{{{}}}", fmt::join(entries, ","));
  header.append((header_alignment - header.size() % header_alignment) % header_alignment, ' ');
  if (header.size() > max_header_bytes) fail("{}: header of {} bytes (the format allows {})", file, header.size(), max_header_bytes);
  return header;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& target, std::span<const TensorView> tensors, const Metadata& metadata)
    : file_(target), name_(target.string()), order_(data_order(tensors)) {
  const std::vector<std::size_t> sizes = sizes_of(tensors, name_);
  const std::string header = header_of(tensors, sizes, order_, metadata, name_);
  const std::uint64_t length = header.size();
  file_.write(std::as_bytes(std::span(&length, 1)));
  file_.write(header);
  left_ = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > left_) fail_internal("{}: {} bytes more than announced", name_, bytes.size() - left_);
  file_.write(bytes);
  left_ -= bytes.size();
}

void SafetensorsWriter::commit() {
  if (left_ != 0) fail_internal("{}: {} bytes of data are missing", name_, left_);
  file_.commit();
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors, const Metadata& metadata) {
  for (const TensorView& tensor : tensors) {
    const std::string what = fmt::format("{}: tensor {}", path.string(), quote_name(tensor.name));
    const std::int64_t needed = dense_bytes(tensor.dtype, tensor.shape, what);
    if (static_cast<std::uint64_t>(needed) != tensor.data.size())
      fail("{}: {} takes {} bytes, {} were given", what, type_text(tensor.dtype, tensor.shape), needed, tensor.data.size());
  }
  SafetensorsWriter writer(path, tensors, metadata);
  for (std::size_t i : writer.order()) writer.write(tensors[i].data);
  writer.commit();
}

void save_safetensors(const std::filesystem::path& path, const NamedArrays& arrays, const Metadata& metadata) {
  std::vector<TensorView> tensors;
  for (const auto& [name, array] : arrays) tensors.push_back(view_of(name, array));
  write_safetensors(path, tensors, metadata);
}

}  // namespace rlx
