#include "formats/tensors/safetensors.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/ranges.h>

#include "base/names.h"
#include "formats/json/json.h"

namespace rlx {
namespace {

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;  // the reference reader's limit
constexpr int header_depth = 8;  // {"name": {"shape": [...]}} needs 3; the rest lets a nested __metadata__ be named as such

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr std::array<DTypeName, 16> dtype_names{{
    {"F64", f64},
    {"F32", f32},
    {"F16", f16},
    {"BF16", bf16},
    {"F8_E4M3", f8e4m3},
    {"F8_E5M2", f8e5m2},
    {"I64", i64},
    {"I32", i32},
    {"I16", i16},
    {"I8", i8},
    {"U64", u64},
    {"U32", u32},
    {"U16", u16},
    {"U8", u8},
    {"BOOL", boolean},
    {"C64", c64},
}};
constexpr std::array<std::string_view, 6> foreign_dtypes{"F4", "F6_E2M3", "F6_E3M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"};

std::uint64_t read_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

/// The header's text, after the checks that need no JSON.
std::string_view header_text(std::span<const std::byte> bytes, std::string_view file) {
  if (bytes.size() < length_bytes) fail("{}: truncated header: {} bytes, its length alone takes 8", file, bytes.size());
  const std::uint64_t length = read_u64(bytes);
  if (length == 0) fail("{}: the header is empty", file);
  if (length > max_header_bytes) fail("{}: header of {} bytes (at most {} are allowed)", file, length, max_header_bytes);
  if (length > bytes.size() - length_bytes)
    fail("{}: header of {} bytes ends past the end of the file ({} bytes)", file, length, bytes.size());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + length_bytes, length);
  if (!text.starts_with('{')) fail("{}: header does not start with '{{'", file);
  return text;
}

Metadata read_metadata(const json::Value& value, std::string_view file) {
  if (!value.is_object()) fail("{}: __metadata__ is {}, an object of strings is needed", file, value.type_name());
  Metadata out;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) fail("{}: __metadata__: {} is {}, only strings are allowed", file, quote_name(key), text.type_name());
    out.emplace(key, text.get<std::string>());
  }
  return out;
}

struct Range {
  std::uint64_t begin, end;
};

/// One entry of the header; `what` is "file: tensor 'name'".
class EntryReader {
 public:
  EntryReader(const json::Value& entry, std::string what, std::span<const std::byte> data)
      : entry_(entry), what_(std::move(what)), data_(data) {
    if (!entry_.is_object()) fail("{}: entry is {}, an object is needed", what_, entry_.type_name());
    for (const auto& [field, value] : entry_.items())
      if (field != "dtype" && field != "shape" && field != "data_offsets")
        fail("{}: unknown field {} (allowed: dtype, shape, data_offsets)", what_, quote_name(field));
  }

  TensorView read(std::string name) const {
    TensorView tensor{std::move(name), dtype(), shape(), {}};
    const Range range = offsets();
    const auto needed = static_cast<std::uint64_t>(dense_bytes(tensor.dtype, tensor.shape, what_));
    if (range.end - range.begin != needed)
      fail("{}: {} takes {} bytes, data_offsets [{}, {}] hold {}", what_, type_text(tensor.dtype, tensor.shape), needed, range.begin,
           range.end, range.end - range.begin);
    tensor.data = data_.subspan(range.begin, range.end - range.begin);
    return tensor;
  }

 private:
  const json::Value& field(std::string_view name) const {
    const auto found = entry_.find(name);
    if (found == entry_.end()) fail("{}: missing field '{}'", what_, name);
    return *found;
  }

  DType dtype() const {
    const json::Value& value = field("dtype");
    if (!value.is_string()) fail("{}: dtype is {}, a string is needed", what_, value.type_name());
    const auto& text = value.get_ref<const std::string&>();
    if (const auto dtype = parse_safetensors_dtype(text)) return *dtype;
    const bool foreign = std::find(foreign_dtypes.begin(), foreign_dtypes.end(), text) != foreign_dtypes.end();
    std::vector<std::string_view> allowed;
    allowed.reserve(dtype_names.size());
    for (const DTypeName& row : dtype_names) allowed.push_back(row.name);
    fail("{}: {} dtype {} (allowed: {})", what_, foreign ? "unsupported" : "unknown", quote_name(text), fmt::join(allowed, ", "));
  }

  std::vector<std::int64_t> shape() const {
    const json::Value& value = field("shape");
    if (!value.is_array()) fail("{}: shape is {}, a list of sizes is needed", what_, value.type_name());
    if (value.size() > max_file_rank) fail("{}: shape has {} dimensions (allowed: 0..{})", what_, value.size(), max_file_rank);
    std::vector<std::int64_t> sizes;
    for (const json::Value& size : value) {
      if (!size.is_number_unsigned() || size.get<std::uint64_t>() > INT64_MAX)
        fail("{}: shape has the dimension {} (allowed: integers 0..{})", what_, short_text(size), INT64_MAX);
      sizes.push_back(size.get<std::int64_t>());
    }
    return sizes;
  }

  Range offsets() const {
    const json::Value& value = field("data_offsets");
    if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() || !value[1].is_number_unsigned())
      fail("{}: data_offsets are {}, two unsigned 64-bit integers are needed", what_, short_text(value));
    const Range range{value[0].get<std::uint64_t>(), value[1].get<std::uint64_t>()};
    if (range.begin > range.end) fail("{}: data_offsets [{}, {}] begin after their end", what_, range.begin, range.end);
    if (range.end > data_.size())
      fail("{}: data_offsets [{}, {}] end past the data ({} bytes)", what_, range.begin, range.end, data_.size());
    return range;
  }

  static std::string short_text(const json::Value& value) {
    std::string text = value.dump();
    return text.size() <= 80 ? text : text.substr(0, text.find_last_of(",[", 80) + 1) + "...";
  }

  const json::Value& entry_;
  std::string what_;
  std::span<const std::byte> data_;
};

/// Every byte of the data belongs to exactly one tensor.
void check_coverage(std::span<const TensorView> tensors, std::span<const std::byte> data, std::string_view file) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  auto begin = [&](const TensorView* tensor) { return static_cast<std::size_t>(tensor->data.data() - data.data()); };
  std::sort(order.begin(), order.end(), [&](const TensorView* a, const TensorView* b) {
    return std::tuple(begin(a), a->data.size(), a) < std::tuple(begin(b), b->data.size(), b);
  });
  std::size_t covered = 0;
  const TensorView* before = nullptr;
  for (const TensorView* tensor : order) {
    const std::size_t start = begin(tensor), end = start + tensor->data.size();
    if (start < covered)
      fail("{}: tensor {}: data_offsets [{}, {}] overlap tensor {}", file, quote_name(tensor->name), start, end, quote_name(before->name));
    if (start > covered)
      fail("{}: tensor {}: data_offsets [{}, {}] leave a hole: bytes {}..{} belong to no tensor", file, quote_name(tensor->name), start,
           end, covered, start);
    covered = end;
    before = tensor;
  }
  if (covered != data.size()) fail("{}: data: {} bytes after the last tensor belong to none", file, data.size() - covered);
}

std::vector<std::size_t> order_by_name(std::span<const TensorView> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
  return order;
}

}  // namespace

std::string_view safetensors_dtype_name(DType dtype) {
  for (const DTypeName& row : dtype_names)
    if (row.dtype == dtype) return row.name;
  return {};
}

std::optional<DType> parse_safetensors_dtype(std::string_view name) {
  for (const DTypeName& row : dtype_names)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, std::string name) {
  SafetensorsFile file;
  file.name_ = std::move(name);
  const std::string_view text = header_text(bytes, file.name_);
  const auto data = bytes.subspan(length_bytes + text.size());
  const json::Value header = json::parse(text, file.name_ + ": header", {.max_depth = header_depth, .max_bytes = max_header_bytes});
  for (const auto& [key, value] : header.get_ref<const json::Value::object_t&>()) {
    if (key == "__metadata__") file.metadata_ = read_metadata(value, file.name_);
    else file.tensors_.push_back(EntryReader(value, fmt::format("{}: tensor {}", file.name_, quote_name(key)), data).read(key));
  }
  check_coverage(file.tensors_, data, file.name_);
  file.by_name_ = order_by_name(file.tensors_);
  return file;
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  auto mapping = std::make_shared<const MappedFile>(MappedFile::open(path));
  SafetensorsFile file = parse(mapping->bytes(), path.string());
  file.mapping_ = std::move(mapping);
  return file;
}

const TensorView* SafetensorsFile::find(std::string_view tensor) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), tensor,
                                      [&](std::size_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  return found != by_name_.end() && tensors_[*found].name == tensor ? &tensors_[*found] : nullptr;
}

const TensorView& SafetensorsFile::at(std::string_view tensor) const {
  if (const TensorView* found = find(tensor)) return *found;
  std::vector<std::string_view> known;
  known.reserve(tensors_.size());
  for (const TensorView& other : tensors_) known.push_back(other.name);
  fail("{}: no tensor {} among {}{}", name_, quote_name(tensor), known.size(), near_hint(tensor, known));
}

TensorFile load_safetensors(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  TensorFile loaded{{}, file.metadata()};
  for (const TensorView& tensor : file.tensors()) loaded.arrays.emplace(tensor.name, to_array(tensor, file.mapping()));
  return loaded;
}

}  // namespace rlx
