#include "rlx/array.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "base/memory/zero_memory.h"
#include "base/small_float.h"
#include "ir/array_type.h"

namespace rlx {
namespace {

std::int64_t element_count(DType dtype, const std::vector<std::int64_t>& shape) {
  for (std::int64_t size : shape)
    if (size < 0) fail("array: size {} is negative", size);
  auto count = checked_product(shape);
  if (!count || !checked_mul(*count, std::int64_t{16}))
    fail("array: {}[{}] has too many elements (allowed: below 2^59)", name(dtype), fmt::join(shape, ","));
  return *count;
}

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <class T>
void store(std::byte* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

const SmallFloat& format_of(DType t) {
  switch (t) {
    case DType::f16: return f16_format;
    case DType::bf16: return bf16_format;
    case DType::f8e4m3: return f8e4m3_format;
    default: return f8e5m2_format;
  }
}

std::uint64_t load_bits(DType t, const std::byte* p, std::int64_t i) {
  switch (info(t).bits) {
    case 4: return (static_cast<std::uint64_t>(p[i / 2]) >> (i % 2 * 4)) & 15;
    case 8: return static_cast<std::uint64_t>(p[i]);
    case 16: return load<std::uint16_t>(p + 2 * i);
    case 32: return load<std::uint32_t>(p + 4 * i);
    default: return load<std::uint64_t>(p + 8 * i);
  }
}

void store_bits(DType t, std::byte* p, std::int64_t i, std::uint64_t bits) {
  switch (info(t).bits) {
    case 4: {
      const int shift = static_cast<int>(i % 2 * 4);
      p[i / 2] = static_cast<std::byte>((static_cast<unsigned>(p[i / 2]) & ~(15u << shift)) | ((bits & 15u) << shift));
      break;
    }
    case 8: p[i] = static_cast<std::byte>(bits); break;
    case 16: store(p + 2 * i, static_cast<std::uint16_t>(bits)); break;
    case 32: store(p + 4 * i, static_cast<std::uint32_t>(bits)); break;
    default: store(p + 8 * i, bits);
  }
}

/// Saturates; NaN gives 0; truncates toward zero.
template <class T>
T saturate(double value, T lowest, T highest) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(lowest)) return lowest;
  if (value >= static_cast<double>(highest)) return highest;
  return static_cast<T>(value);
}

void check_index(const Array& array, std::int64_t i) {
  if (i >= 0 && i < array.size()) return;
  const std::string what = fmt::format("array: index {} of {}[{}]", i, name(array.dtype()), fmt::join(array.shape(), ","));
  if (array.size() == 0) fail("{}, which has no elements", what);
  fail("{} (allowed: 0..{})", what, array.size() - 1);
}

/// Where the elements are written, once element `i` is known to be one.
std::byte* writable(Array& array, std::int64_t i) {
  check_index(array, i);
  return array.mutable_bytes().data();
}

}  // namespace

std::int64_t array_bytes(DType dtype, const std::vector<std::int64_t>& shape) { return bytes_for(dtype, element_count(dtype, shape)); }

Array::Array(DType dtype, std::vector<std::int64_t> shape) : dtype_(dtype), shape_(std::move(shape)), size_(element_count(dtype_, shape_)) {
  const auto bytes = static_cast<std::size_t>(bytes_for(dtype_, size_));
  const std::shared_ptr<std::byte> memory = zero_memory(bytes);
  if (!memory) fail("array: no memory for {}[{}], {} bytes", name(dtype_), fmt::join(shape_, ","), bytes);
  writable_ = memory.get();
  bytes_ = {writable_, bytes};
  owner_ = memory;
}

Array::Array(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
    : dtype_(dtype), shape_(std::move(shape)), size_(element_count(dtype_, shape_)), bytes_(bytes), owner_(std::move(owner)) {
  const std::int64_t wanted = bytes_for(dtype_, size_);
  if (static_cast<std::int64_t>(bytes_.size()) != wanted)
    fail("array: {} bytes for {} elements of {} (needed: {})", bytes_.size(), size_, name(dtype_), wanted);
}

Array Array::of(DType dtype, std::vector<std::int64_t> shape, std::span<const float> values) {
  if (is_complex(dtype)) fail("array: floats are no values of {}", name(dtype));
  Array array(dtype, std::move(shape));
  if (array.size() != std::ssize(values)) fail("array: {} values for a shape of {} elements", values.size(), array.size());
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, static_cast<double>(values[static_cast<std::size_t>(i)]));
  return array;
}

std::vector<float> Array::floats() const {
  if (is_complex(dtype_)) fail("array: {} has no values that are floats", name(dtype_));
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(size_));
  for (std::int64_t i = 0; i < size_; ++i) values.push_back(static_cast<float>(get_double(i)));
  return values;
}

std::span<std::byte> Array::mutable_bytes() {
  if (remote_) *this = own_on_host();
  if (!writable_ && !bytes_.empty()) fail_internal("array: a view of foreign bytes cannot be written");
  return {writable_, bytes_.size()};
}

void Array::check_type(DType wanted, std::size_t alignment) const {
  if (dtype_ != wanted) fail("array: elements are {}, asked for as {}", name(dtype_), name(wanted));
  if (reinterpret_cast<std::uintptr_t>(bytes().data()) % alignment != 0) fail("array: bytes are not aligned for {}", name(wanted));
}

double Array::get_double(std::int64_t i) const {
  check_index(*this, i);
  const std::byte* p = bytes().data();
  switch (info(dtype_).kind) {
    case DTypeClass::signed_int: return static_cast<double>(get_int(i));
    case DTypeClass::unsigned_int: return static_cast<double>(get_uint(i));
    case DTypeClass::boolean: return p[i] != std::byte{0};
    case DTypeClass::complex: return get_complex(i).real();
    case DTypeClass::floating: break;
  }
  if (dtype_ == f64) return load<double>(p + 8 * i);
  if (dtype_ == f32) return load<float>(p + 4 * i);
  return decode(format_of(dtype_), static_cast<std::uint32_t>(load_bits(dtype_, p, i)));
}

std::int64_t Array::get_int(std::int64_t i) const {
  check_index(*this, i);
  switch (info(dtype_).kind) {
    case DTypeClass::signed_int: {
      const int shift = 64 - info(dtype_).bits;
      return static_cast<std::int64_t>(load_bits(dtype_, bytes().data(), i) << shift) >> shift;
    }
    case DTypeClass::unsigned_int: return static_cast<std::int64_t>(get_uint(i));
    case DTypeClass::boolean: return bytes()[static_cast<std::size_t>(i)] != std::byte{0};
    default:
      return saturate<std::int64_t>(get_double(i), std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  }
}

std::uint64_t Array::get_uint(std::int64_t i) const {
  check_index(*this, i);
  switch (info(dtype_).kind) {
    case DTypeClass::unsigned_int: return load_bits(dtype_, bytes().data(), i);
    case DTypeClass::signed_int:
    case DTypeClass::boolean: return static_cast<std::uint64_t>(get_int(i));
    default: return saturate<std::uint64_t>(get_double(i), 0, std::numeric_limits<std::uint64_t>::max());
  }
}

std::complex<double> Array::get_complex(std::int64_t i) const {
  check_index(*this, i);
  const std::byte* p = bytes().data();
  if (dtype_ == c64) return {load<float>(p + 8 * i), load<float>(p + 8 * i + 4)};
  if (dtype_ == c128) return {load<double>(p + 16 * i), load<double>(p + 16 * i + 8)};
  return get_double(i);
}

void Array::set_double(std::int64_t i, double value) {
  std::byte* p = writable(*this, i);
  const int bits = info(dtype_).bits;
  switch (info(dtype_).kind) {
    case DTypeClass::signed_int: {
      const std::int64_t highest = static_cast<std::int64_t>(~0ull >> (65 - bits));
      return set_int(i, saturate<std::int64_t>(value, -highest - 1, highest));
    }
    case DTypeClass::unsigned_int: return set_uint(i, saturate<std::uint64_t>(value, 0, ~0ull >> (64 - bits)));
    case DTypeClass::boolean: p[i] = static_cast<std::byte>(value != 0); return;
    case DTypeClass::complex: return set_complex(i, value);
    case DTypeClass::floating: break;
  }
  if (dtype_ == f64) return store(p + 8 * i, value);
  if (dtype_ == f32) return store(p + 4 * i, static_cast<float>(value));
  store_bits(dtype_, p, i, encode(format_of(dtype_), value));
}

void Array::set_int(std::int64_t i, std::int64_t value) {
  std::byte* p = writable(*this, i);
  if (is_integer(dtype_)) return store_bits(dtype_, p, i, static_cast<std::uint64_t>(value));
  if (dtype_ == f32) return store(p + 4 * i, static_cast<float>(value));  // one rounding, not two
  set_double(i, static_cast<double>(value));
}

void Array::set_uint(std::int64_t i, std::uint64_t value) {
  std::byte* p = writable(*this, i);
  if (is_integer(dtype_)) return store_bits(dtype_, p, i, value);
  if (dtype_ == f32) return store(p + 4 * i, static_cast<float>(value));
  set_double(i, static_cast<double>(value));
}

void Array::set_complex(std::int64_t i, std::complex<double> value) {
  std::byte* p = writable(*this, i);
  if (dtype_ == c64) {
    store(p + 8 * i, static_cast<float>(value.real()));
    store(p + 8 * i + 4, static_cast<float>(value.imag()));
  } else if (dtype_ == c128) {
    store(p + 16 * i, value.real());
    store(p + 16 * i + 8, value.imag());
  } else if (is_bool(dtype_)) {
    p[i] = static_cast<std::byte>(value != 0.0);
  } else {
    set_double(i, value.real());
  }
}

bool operator==(const Array& a, const Array& b) {
  if (a.dtype_ != b.dtype_ || a.shape_ != b.shape_ || a.bytes_.size() != b.bytes_.size()) return false;
  return a.bytes_.empty() || a.bytes_.data() == b.bytes_.data() || std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes_.size()) == 0;
}

}  // namespace rlx
