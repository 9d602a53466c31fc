#include "formats/gguf/gguf_parser.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "base/names.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_byte_order.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

constexpr std::string_view magic = "GGUF";
constexpr std::size_t longest_key = 65535, longest_tensor_name = 64;  // the specification's limits
constexpr std::size_t highest_rank = 4;
constexpr int deepest_array = 16;  // no known writer nests more than twice
constexpr std::uint32_t newest_version = 3;

struct TypeRow {
  std::string_view name;
  std::size_t bytes;  // 0: it varies
};
constexpr std::array<TypeRow, 13> type_rows{{{"u8", 1},
                                             {"i8", 1},
                                             {"u16", 2},
                                             {"i16", 2},
                                             {"u32", 4},
                                             {"i32", 4},
                                             {"f32", 4},
                                             {"bool", 1},
                                             {"string", 0},
                                             {"array", 0},
                                             {"u64", 8},
                                             {"i64", 8},
                                             {"f64", 8}}};

/// The dtype of plain tensors by the name of their format.
struct PlainType {
  std::string_view format;
  DType dtype;
};
constexpr std::array<PlainType, 8> plain_types{
    {{"F32", f32}, {"F16", f16}, {"BF16", bf16}, {"F64", f64}, {"I8", i8}, {"I16", i16}, {"I32", i32}, {"I64", i64}}};

DType dtype_of_format(const BlockFormat& format) {
  for (const PlainType& row : plain_types)
    if (row.format == format.name) return row.dtype;
  return f32;
}

std::uint64_t number_of(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

/// The version is at most 65535 in the byte order of the file.
bool is_turned_version(std::uint64_t version) { return version != 0 && (version & 0xFFFF) == 0; }

void check_overlaps(const std::vector<TensorView>& tensors, const std::string& file) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors)
    if (!tensor.data.empty()) order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](const TensorView* a, const TensorView* b) { return std::pair(a->data.data(), a) < std::pair(b->data.data(), b); });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i]->data.data() < order[i - 1]->data.data() + order[i - 1]->data.size())
      fail("{}: tensor {}: its data overlaps that of tensor {}", file, quote_name(order[i]->name), quote_name(order[i - 1]->name));
}

void check_keys(const std::vector<GgufValue>& metadata, const std::string& file) {
  std::vector<std::string_view> keys;
  for (const GgufValue& value : metadata) keys.push_back(value.key());
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) fail("{}: duplicate key {}", file, quote_name(*twice));
}

void check_type(const GgufValue& value, GgufType wanted, const std::string& file) {
  if (value.type() != wanted)
    fail("{}: key {}: wrong value type {} (allowed: {})", file, quote_name(value.key()), name(value.type()), name(wanted));
}

std::size_t alignment_of(const std::vector<GgufValue>& metadata, const std::string& file) {
  const GgufValue* value = find_value(metadata, "general.alignment");
  if (!value) return 32;
  check_type(*value, GgufType::u32, file);
  const std::int64_t alignment = value->integer();
  if (!std::has_single_bit(static_cast<std::uint64_t>(alignment)))
    fail("{}: key 'general.alignment': {} (allowed: powers of two)", file, alignment);
  return static_cast<std::size_t>(alignment);
}

}  // namespace

std::string_view name(GgufType type) { return type_rows[static_cast<std::size_t>(type)].name; }

std::size_t number_bytes(GgufType type) { return type_rows[static_cast<std::size_t>(type)].bytes; }

bool looks_like_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), reinterpret_cast<const char*>(bytes.data()));
}

void GgufParser::require(std::uint64_t count, std::size_t least_bytes, std::string_view what) const {
  if (count > left() / least_bytes)
    fail("{}: {}: {} x {} would end past the end of the file ({} bytes are left)", file_, where_, count, what, left());
}

std::uint64_t GgufParser::read_number(std::size_t bytes) {
  if (bytes > left()) fail("{}: {}: truncated: {} more bytes are needed, {} are left of the file", file_, where_, bytes, left());
  if (writable_) turn_number({writable_ + at_, bytes});
  const std::uint64_t value = number_of(bytes_.subspan(at_, bytes));
  at_ += bytes;
  return value;
}

std::string_view GgufParser::read_string() {
  const std::uint64_t length = read_length();
  if (length > left())
    fail("{}: {}: a string of {} bytes would end past the end of the file ({} bytes are left)", file_, where_, length, left());
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
  at_ += length;
  return text;
}

/// Of a key or a tensor, which `where_` tells.
std::string_view GgufParser::read_name(std::size_t longest) {
  const std::string_view text = read_string();
  if (text.empty()) fail("{}: {} is empty", file_, where_);
  if (text.size() > longest) fail("{}: {}: {} has {} bytes (allowed: 1..{})", file_, where_, quote_name(text), text.size(), longest);
  if (!is_utf8(text) || text.find('\0') != std::string_view::npos)
    fail("{}: {}: {} is not UTF-8 text without NUL", file_, where_, quote_name(text));
  return text;
}

GgufType GgufParser::read_type() {
  const std::uint64_t type = read_number(4);
  if (type >= type_rows.size()) fail("{}: {}: unknown value type {} (allowed: 0..{})", file_, where_, type, type_rows.size() - 1);
  return static_cast<GgufType>(type);
}

void GgufParser::skip_numbers(GgufType type, std::size_t width, std::uint64_t count) {
  require(count, width, name(type));
  for (std::uint64_t i = 0; writable_ && i < count; ++i) turn_number({writable_ + at_ + i * width, width});
  const auto values = bytes_.subspan(at_, count * width);
  if (type == GgufType::boolean)
    for (std::byte value : values)
      if (std::to_integer<int>(value) > 1) fail("{}: {}: bool of value {} (allowed: 0, 1)", file_, where_, std::to_integer<int>(value));
  at_ += values.size();
}

void GgufParser::skip_elements(GgufType type, std::uint64_t count, int depth) {
  if (const std::size_t width = number_bytes(type)) return skip_numbers(type, width, count);
  require(count, type == GgufType::string ? length_bytes_ : 4 + length_bytes_, name(type));
  for (std::uint64_t i = 0; i < count; ++i) {
    if (type == GgufType::string) read_string();
    else read_array(depth);
  }
}

GgufValue GgufParser::read_array(int depth) {
  if (depth == deepest_array) fail("{}: {}: arrays nested too deeply (allowed: {})", file_, where_, deepest_array);
  GgufValue value;
  value.file_ = &file_;
  value.key_ = key_;
  value.length_bytes_ = static_cast<std::uint8_t>(length_bytes_);
  value.type_ = GgufType::array;
  value.element_ = read_type();
  value.size_ = read_length();
  const std::size_t begin = at_;
  skip_elements(value.element_, value.size_, depth + 1);
  value.bytes_ = bytes_.subspan(begin, at_ - begin);
  return value;
}

GgufValue GgufParser::read_entry() {
  key_ = read_name(longest_key);
  where_ = fmt::format("key {}", quote_name(key_));
  const GgufType type = read_type();
  if (type == GgufType::array) return read_array();
  GgufValue value;
  value.file_ = &file_;
  value.key_ = key_;
  value.length_bytes_ = static_cast<std::uint8_t>(length_bytes_);
  value.type_ = value.element_ = type;
  const std::size_t begin = at_;
  skip_elements(type, 1, 0);
  value.bytes_ = bytes_.subspan(begin, at_ - begin);
  return value;
}

void GgufParser::read_header(GgufPart& part) {
  if (bytes_.size() < magic.size()) fail("{}: truncated header: {} bytes, the magic alone takes {}", file_, bytes_.size(), magic.size());
  if (!looks_like_gguf(bytes_)) fail("{}: not a GGUF file: the magic at its front is missing", file_);
  at_ = magic.size();
  part.version = static_cast<std::uint32_t>(read_number(4));
  if (part.version == 0 || part.version > newest_version)
    fail("{}: header: unsupported version {} (allowed: 1..{})", file_, part.version, newest_version);
  length_bytes_ = part.version == 1 ? 4 : 8;
  tensors_ = read_length();
  keys_ = read_length();
  // Version 1 counts in 32 bits: a later file that is marked so seems to hold nothing.
  if (part.version == 1 && tensors_ == 0 && keys_ == 0 && left() > 0)
    fail("{}: header: version 1 with no keys and no tensors, yet {} bytes follow", file_, left());
  require(keys_, length_bytes_ + 6, "keys");  // a name of one byte, a type, a bool
}

std::vector<std::int64_t> GgufParser::read_shape() {
  const std::uint64_t rank = read_number(4);
  if (rank == 0 || rank > highest_rank) fail("{}: {}: {} dimensions (allowed: 1..{})", file_, where_, rank, highest_rank);
  std::vector<std::int64_t> shape(rank);
  for (std::uint64_t i = rank; i-- > 0;) {  // the file has the innermost first
    const std::uint64_t size = read_length();
    if (!std::in_range<std::int64_t>(size)) fail("{}: {}: dimension {} (allowed: 0..{})", file_, where_, size, INT64_MAX);
    shape[i] = static_cast<std::int64_t>(size);
  }
  return shape;
}

TensorView GgufParser::read_tensor(std::uint64_t& offset) {
  TensorView tensor;
  tensor.name = read_name(longest_tensor_name);
  where_ = fmt::format("tensor {}", quote_name(tensor.name));
  tensor.shape = read_shape();
  const auto type = static_cast<std::uint32_t>(read_number(4));
  tensor.format = find_block_format(type);
  if (!tensor.format) fail("{}: {}: unknown tensor type {}", file_, where_, type);
  tensor.dtype = dtype_of_format(*tensor.format);
  offset = read_number(8);
  return tensor;
}

std::span<const std::byte> GgufParser::tensor_data(const TensorView& tensor, std::uint64_t offset, std::size_t data_begin,
                                                   std::size_t alignment) {
  where_ = fmt::format("tensor {}", quote_name(tensor.name));
  const std::size_t size = block_bytes(*tensor.format, tensor.shape, fmt::format("{}: {}", file_, where_));
  if (offset % alignment != 0) fail("{}: {}: offset {} is no multiple of the alignment {}", file_, where_, offset, alignment);
  if (size == 0) return {};
  const std::uint64_t available = bytes_.size() - std::min(bytes_.size(), data_begin);
  if (offset > available || size > available - offset)
    fail("{}: {}: {} bytes of data at offset {} would end past the end of the file ({} bytes of data)", file_, where_, size, offset,
         available);
  return bytes_.subspan(data_begin + offset, size);
}

void GgufParser::turn_tensors(const std::vector<TensorView>& tensors) {
  for (const TensorView& tensor : tensors) {
    if (tensor.data.empty()) continue;  // it lies nowhere
    turn_blocks(*tensor.format, {writable_ + (tensor.data.data() - bytes_.data()), tensor.data.size()});
  }
}

void GgufParser::read_file(GgufPart& part) {
  read_header(part);
  for (std::uint64_t i = 0; i < keys_; ++i) {
    where_ = fmt::format("key {} of {}", i + 1, keys_);
    part.metadata.push_back(read_entry());
  }
  check_keys(part.metadata, file_);
  if (const GgufValue* architecture = find_value(part.metadata, "general.architecture")) check_type(*architecture, GgufType::string, file_);
  part.alignment = alignment_of(part.metadata, file_);
  where_ = "header";
  require(tensors_, length_bytes_, "tensors");  // enough before `offsets` is allocated; what is missing is told by name
  std::vector<std::uint64_t> offsets(tensors_);
  for (std::uint64_t i = 0; i < tensors_; ++i) {
    where_ = fmt::format("tensor name {} of {}", i + 1, tensors_);
    part.tensors.push_back(read_tensor(offsets[i]));
  }
  const std::size_t data_begin = at_ + (part.alignment - at_ % part.alignment) % part.alignment;  // both are below 2^63
  for (std::size_t i = 0; i < offsets.size(); ++i)
    part.tensors[i].data = tensor_data(part.tensors[i], offsets[i], data_begin, part.alignment);
  check_overlaps(part.tensors, file_);
  if (writable_) turn_tensors(part.tensors);
}

std::unique_ptr<const GgufPart> read_gguf_part(std::span<const std::byte> bytes, std::string name,
                                               std::shared_ptr<const MappedFile> mapping) {
  auto part = std::make_unique<GgufPart>();
  part->name = std::move(name);
  part->mapping = std::move(mapping);
  part->file_bytes = bytes.size();
  part->big_endian = looks_like_gguf(bytes) && bytes.size() >= 8 && is_turned_version(number_of(bytes.subspan(4, 4)));
  if (part->big_endian) {
    part->turned.assign(bytes.begin(), bytes.end());
    bytes = part->turned;
  }
  GgufParser(bytes, part->big_endian ? part->turned.data() : nullptr, part->name).read_file(*part);
  return part;
}

const GgufValue* find_value(std::span<const GgufValue> metadata, std::string_view key) {
  const auto found = std::find_if(metadata.begin(), metadata.end(), [&](const GgufValue& value) { return value.key() == key; });
  return found == metadata.end() ? nullptr : &*found;
}

}  // namespace rlx
