#include "formats/tensors/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "base/files/mapped_file.h"
#include "base/names.h"
#include "formats/tensors/npy_header.h"
#include "formats/tensors/tensor_view.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little, "row-major little-endian data is used as it lies in the file");

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t max_header_bytes = 65535;  // all that version 1.0 can write; longer ones only serve structured dtypes
constexpr std::size_t header_alignment = 64;

struct NpyType {
  std::string_view code;  // without the byte order
  DType dtype;
};
constexpr std::array<NpyType, 14> npy_types{{
    {"b1", boolean},
    {"i1", i8},
    {"i2", i16},
    {"i4", i32},
    {"i8", i64},
    {"u1", u8},
    {"u2", u16},
    {"u4", u32},
    {"u8", u64},
    {"f2", f16},
    {"f4", f32},
    {"f8", f64},
    {"c8", c64},
    {"c16", c128},
}};

/// Types of the package ml_dtypes by their names, which numpy knows once it is imported; an element of 4 bits takes a byte. numpy.save
/// itself writes what it takes to be their layout instead ('<V2'), which readers get back as bytes, and which names a type only where one
/// has it.
constexpr std::array<NpyType, 7> ml_types{{
    {"bfloat16", bf16},
    {"float8_e4m3fn", f8e4m3},
    {"float8_e5m2", f8e5m2},
    {"int4", i4},
    {"uint4", u4},
    {"<V2", bf16},
    {"<f1", f8e5m2},
}};

/// Bytes that are reversed as one when the byte order changes: each part of a complex number has its own order.
std::size_t bytes_per_part(DType dtype) {
  const auto bytes = static_cast<std::size_t>(info(dtype).bits / 8);
  return is_complex(dtype) ? bytes / 2 : bytes;
}

struct Layout {
  DType dtype;
  bool big_endian;
};

Layout parse_descr(std::string_view descr, std::string_view file) {
  if (descr == "|O" || descr == "O") fail("{}: unsupported dtype '{}': objects are pickles, which are never loaded", file, descr);
  for (const NpyType& type : ml_types)
    if (type.code == descr) return {type.dtype, false};
  if (descr == "<V1") fail("{}: dtype '<V1' does not say which type of 4 or 8 bits it is (float8_e4m3fn, int4 and uint4 do)", file);
  const char order = descr.empty() ? '\0' : descr[0];
  for (const NpyType& type : npy_types) {
    if (descr.empty() || descr.substr(1) != type.code) continue;
    const bool single = bytes_per_part(type.dtype) == 1;
    if (order == '<' || order == '>' || (order == '|' && single)) return {type.dtype, order == '>' && !single};
  }
  fail(
      "{}: unsupported dtype {} (allowed: b1, i1..i8, u1..u8, f2, f4, f8, c8, c16, after '<' or '>', and bfloat16, float8_e4m3fn, "
      "float8_e5m2, "
      "int4, uint4)",
      file, quote_name(descr));
}

std::size_t read_little_endian(std::span<const std::byte> bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::size_t>(bytes[i]);
  return value;
}

std::string_view header_text(std::span<const std::byte> bytes, std::string_view file) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, magic.size()) != magic.substr(0, text.size())) fail("{}: not an npy file: bad magic", file);
  if (text.size() < magic.size() + 2) fail("{}: truncated header: the file has {} bytes", file, text.size());
  const int major = std::to_integer<int>(bytes[6]), minor = std::to_integer<int>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0) fail("{}: unsupported version {}.{} (allowed: 1.0, 2.0, 3.0)", file, major, minor);
  const std::size_t start = major == 1 ? 10 : 12;
  if (text.size() < start) fail("{}: truncated header: the file has {} bytes", file, text.size());
  const std::size_t length = read_little_endian(bytes.subspan(8, start - 8));
  if (length > text.size() - start) fail("{}: header of {} bytes ends past the end of the file ({} bytes)", file, length, text.size());
  if (length > max_header_bytes) fail("{}: header of {} bytes (at most {} are read)", file, length, max_header_bytes);
  return text.substr(start, length);
}

/// Element strides of a column-major array, in elements.
std::vector<std::size_t> column_major_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> strides;
  std::size_t stride = 1;
  for (std::int64_t size : shape) {
    strides.push_back(stride);
    stride *= static_cast<std::size_t>(size);
  }
  return strides;
}

/// Fills `out` in row-major order from column-major `data`.
void copy_column_major(std::span<const std::byte> data, const std::vector<std::int64_t>& shape, std::size_t element,
                       std::span<std::byte> out) {
  const std::vector<std::size_t> strides = column_major_strides(shape);
  std::vector<std::int64_t> index(shape.size(), 0);
  std::size_t source = 0;
  for (std::size_t target = 0; target < out.size(); target += element) {
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(source * element), element, out.begin() + static_cast<std::ptrdiff_t>(target));
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      source += strides[axis];
      if (++index[axis] < shape[axis]) break;
      source -= strides[axis] * static_cast<std::size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
}

void reverse_parts(std::span<std::byte> bytes, std::size_t part) {
  for (auto at = bytes.begin(); at != bytes.end(); at += static_cast<std::ptrdiff_t>(part))
    std::reverse(at, at + static_cast<std::ptrdiff_t>(part));
}

/// '<f4', or the name of a type that only ml_dtypes knows.
std::string descr_of(DType dtype) {
  for (const NpyType& type : ml_types)
    if (type.dtype == dtype) return std::string(type.code);
  const auto known = std::ranges::find(npy_types, dtype, &NpyType::dtype);
  return fmt::format("{}{}", bytes_per_part(dtype) == 1 ? '|' : '<', known->code);
}

std::string header_for(DType dtype, const std::vector<std::int64_t>& sizes) {
  std::string shape = fmt::format("{}", fmt::join(sizes, ", "));
  if (sizes.size() == 1) shape += ",";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr_of(dtype), shape);
  const std::size_t used = magic.size() + 4 + text.size() + 1;
  text.append((header_alignment - used % header_alignment) % header_alignment, ' ');
  return text + "\n";
}

/// The type of which a file has elements: those of 4 bits take a byte there.
DType type_in_file(DType dtype) { return is_packed(dtype) ? u8 : dtype; }

/// The elements as numbers of `to`, of which 4 bits are used.
Array with_nibbles(const Array& from, DType to) {
  Array result(to, from.shape());
  for (std::int64_t i = 0; i < from.size(); ++i) result.set_uint(i, from.get_uint(i) & 15);
  return result;
}

}  // namespace

Array parse_npy(std::span<const std::byte> bytes, std::string_view name, std::shared_ptr<const void> owner) {
  const std::string_view text = header_text(bytes, name);
  const NpyHeader header = parse_npy_header(text, name);
  const Layout layout = parse_descr(header.descr, name);
  const DType dtype = type_in_file(layout.dtype);
  const auto needed = static_cast<std::uint64_t>(dense_bytes(dtype, header.shape, fmt::format("{}: header", name)));
  const auto start = static_cast<std::size_t>(text.data() + text.size() - reinterpret_cast<const char*>(bytes.data()));
  const auto data = bytes.subspan(start);
  if (data.size() != needed)
    fail("{}: {} takes {} bytes, the file holds {} after its header", name, type_text(layout.dtype, header.shape), needed, data.size());
  const bool transposed = header.fortran_order && header.shape.size() > 1;
  if (!transposed && !layout.big_endian && dtype == layout.dtype)
    return to_array({std::string(name), dtype, header.shape, data}, std::move(owner));
  Array out(dtype, header.shape);
  if (transposed) copy_column_major(data, header.shape, static_cast<std::size_t>(info(dtype).bits / 8), out.mutable_bytes());
  else std::copy(data.begin(), data.end(), out.mutable_bytes().begin());
  if (layout.big_endian) reverse_parts(out.mutable_bytes(), bytes_per_part(dtype));
  return dtype == layout.dtype ? out : with_nibbles(out, layout.dtype);
}

Array load_npy(const std::filesystem::path& path) {
  auto mapping = std::make_shared<const MappedFile>(MappedFile::open(path));
  const auto bytes = mapping->bytes();
  return parse_npy(bytes, path.string(), std::move(mapping));
}

bool needs_ml_dtypes(DType dtype) { return std::ranges::find(ml_types, dtype, &NpyType::dtype) != ml_types.end(); }

std::size_t npy_header_bytes(const Array& array) { return magic.size() + 4 + header_for(array.dtype(), array.shape()).size(); }

FileWriter begin_npy(const std::filesystem::path& path, const Array& array) {
  dense_bytes(array.dtype(), array.shape(), path.string());  // refuses a rank that no reader accepts
  const std::string header = header_for(array.dtype(), array.shape());
  const std::array<char, 4> version_and_length{1, 0, static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  FileWriter writer(path);
  writer.write(fmt::format("{}{}{}", magic, std::string_view(version_and_length.data(), version_and_length.size()), header));
  writer.write(is_packed(array.dtype()) ? with_nibbles(array, u8).bytes() : array.bytes());
  writer.finish();
  return writer;
}

void save_npy(const std::filesystem::path& path, const Array& array) { begin_npy(path, array).commit(); }

}  // namespace rlx
