#include "formats/gguf/gguf_writer.h"

#include <set>
#include <string_view>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "base/names.h"
#include "quant/block_format.h"

namespace rlx {
namespace {

constexpr std::size_t longest_name = 64, highest_rank = 4;
constexpr std::uint32_t version = 3;

template <class Number>
void append_number(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(Number));
}

void append_text(std::string& out, std::string_view text) {
  append_number(out, std::uint64_t{text.size()});
  out += text;
}

std::size_t padding(std::size_t at, std::size_t alignment) { return (alignment - at % alignment) % alignment; }

void check_tensor(const TensorView& tensor, std::string_view file) {
  const std::string what = fmt::format("{}: tensor {}", file, quote_name(tensor.name));
  if (tensor.name.empty() || tensor.name.size() > longest_name)
    fail("{}: the name has {} bytes (allowed: 1..{})", what, tensor.name.size(), longest_name);
  if (!is_utf8(tensor.name) || tensor.name.find('\0') != std::string::npos) fail("{}: the name is not UTF-8 text without NUL", what);
  if (tensor.shape.empty() || tensor.shape.size() > highest_rank)
    fail("{}: {} dimensions (GGUF allows 1..{})", what, tensor.shape.size(), highest_rank);
  if (!tensor.format) fail_internal("{}: no format is given", what);
}

/// Bytes of each tensor.
std::vector<std::size_t> sizes_of(std::span<const TensorView> tensors, std::string_view file) {
  std::set<std::string_view> names;
  std::vector<std::size_t> bytes;
  for (const TensorView& tensor : tensors) {
    check_tensor(tensor, file);
    if (!names.insert(tensor.name).second) fail("{}: tensor {}: the name is given twice", file, quote_name(tensor.name));
    bytes.push_back(block_bytes(*tensor.format, tensor.shape, fmt::format("{}: tensor {}", file, quote_name(tensor.name))));
  }
  return bytes;
}

/// All that stands before the data, and its padding.
std::string header_of(const GgufMetadata& metadata, std::span<const TensorView> tensors, const std::vector<std::size_t>& bytes,
                      std::size_t alignment, std::string_view file) {
  std::string out = "GGUF";
  append_number(out, version);
  append_number(out, std::uint64_t{tensors.size()});
  append_number(out, std::uint64_t{metadata.entries().size()});
  for (const GgufMetadata::Entry& entry : metadata.entries()) {
    append_text(out, entry.key);
    out += entry.value;
  }
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    append_text(out, tensors[i].name);
    append_number(out, static_cast<std::uint32_t>(tensors[i].shape.size()));
    for (std::size_t axis = tensors[i].shape.size(); axis-- > 0;) append_number(out, tensors[i].shape[axis]);  // innermost first
    append_number(out, tensors[i].format->id);
    append_number(out, offset);
    const auto end = checked_add(offset, std::uint64_t{bytes[i]} + padding(bytes[i], alignment));
    if (!end) fail("{}: the tensors have more bytes than 64 bits count", file);
    offset = *end;
  }
  if (!tensors.empty()) out.append(padding(out.size(), alignment), '\0');
  return out;
}

}  // namespace

std::string gguf_header(const GgufMetadata& metadata, std::span<const TensorView> tensors, std::string_view file) {
  return header_of(metadata, tensors, sizes_of(tensors, file), metadata.alignment(), file);
}

GgufWriter::GgufWriter(const std::filesystem::path& target, const GgufMetadata& metadata, std::span<const TensorView> tensors)
    : file_(target), name_(target.string()), bytes_(sizes_of(tensors, name_)), alignment_(metadata.alignment()) {
  const std::string header = header_of(metadata, tensors, bytes_, alignment_, name_);
  file_.write(header);
  file_bytes_ = header.size();
  pad();
}

/// Goes on to the next tensor that has data once the current one is whole.
void GgufWriter::pad() {
  while (current_ < bytes_.size() && written_ == bytes_[current_]) {
    const std::string zeros(padding(written_, alignment_), '\0');
    if (!zeros.empty()) file_.write(zeros);
    file_bytes_ += zeros.size();
    written_ = 0;
    ++current_;
  }
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (current_ == bytes_.size() || bytes.size() > bytes_[current_] - written_)
    fail_internal("{}: {} bytes more than tensor {} was announced with", name_, bytes.size(), current_);
  file_.write(bytes);
  file_bytes_ += bytes.size();
  written_ += bytes.size();
  pad();
}

void GgufWriter::commit() {
  if (current_ != bytes_.size()) fail_internal("{}: tensor {} of {} is not complete", name_, current_ + 1, bytes_.size());
  file_.commit();
}

}  // namespace rlx
