#pragma once
#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/dtype.h"
#include "rlx/error.h"

namespace rlx {

template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "no element type for this C++ type");
  return DType::f32;
}();
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <>
inline constexpr DType dtype_of<std::int16_t> = DType::i16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<std::uint16_t> = DType::u16;
template <>
inline constexpr DType dtype_of<std::uint32_t> = DType::u32;
template <>
inline constexpr DType dtype_of<std::uint64_t> = DType::u64;
template <>
inline constexpr DType dtype_of<bool> = DType::boolean;
template <>
inline constexpr DType dtype_of<std::complex<float>> = DType::c64;
template <>
inline constexpr DType dtype_of<std::complex<double>> = DType::c128;

class Device;        // rlx/session.h
struct DeviceBytes;  // what is known of bytes on a device, for the library's own use

/// A dense row-major array in the host's memory, or in a device's: results of runs stay where they were computed until they are read, and
/// are given to other runs there. Copies share the bytes; `mutable_bytes` is for the one who made it.
class Array {
 public:
  Array() = default;
  /// Zero-filled. Throws Error when a size is negative or the total leaves 64 bits.
  Array(DType dtype, std::vector<std::int64_t> shape);
  /// A view of bytes that `owner` keeps alive; `bytes` must hold exactly the elements.
  Array(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  /// A copy of the values, row-major. Throws Error unless they are as many as the shape has elements.
  template <class T>
  static Array of(std::vector<std::int64_t> shape, std::span<const T> values);
  /// The same in elements of any type but a complex one, by the rules of `cast`: Array::of(bf16, {2, 3}, floats).
  static Array of(DType dtype, std::vector<std::int64_t> shape, std::span<const float> values);

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  std::int64_t size() const { return size_; }
  /// Of an array on a device: a copy on the host, made when it is first asked for and kept as long as the array. Throws Error then where
  /// the device fails.
  std::span<const std::byte> bytes() const { return remote_ ? fetched().bytes_ : bytes_; }
  /// Throws InternalError for a view of foreign bytes. An array on a device moves to the host; its copies stay.
  std::span<std::byte> mutable_bytes();
  /// Where it lies.
  Device device() const;
  /// The array on a device: the same one if it lies there, else a copy. One of another device goes by way of the host.
  Array to(const Device& device) const;
  const std::shared_ptr<const void>& owner() const { return owner_; }

  /// The elements; throws Error when T is not the element type or the bytes are not aligned for it.
  template <class T>
  std::span<const T> values() const&;
  /// Of an array that ends with the expression they would be left dangling: give the array a name first.
  template <class T>
  std::span<const T> values() const&& = delete;
  /// The same to write to; throws InternalError for a view of foreign bytes, too.
  template <class T>
  std::span<T> mutable_values();

  /// The elements as floats, by the rules of `cast`; those of f16, bf16 and 8-bit floats exactly. Throws Error for a complex array.
  std::vector<float> floats() const;

  // Element access with conversion, for reference code and tests: any dtype, flat row-major index. Throws Error for an index outside
  // 0..size() - 1, and InternalError where a view of foreign bytes is to be written.
  double get_double(std::int64_t i) const;
  std::int64_t get_int(std::int64_t i) const;
  std::uint64_t get_uint(std::int64_t i) const;
  std::complex<double> get_complex(std::int64_t i) const;
  /// Stores with the conversion rules of `cast`: round to nearest even, float to integer saturates, NaN gives 0, integers wrap.
  void set_double(std::int64_t i, double value);
  void set_int(std::int64_t i, std::int64_t value);
  void set_uint(std::int64_t i, std::uint64_t value);
  void set_complex(std::int64_t i, std::complex<double> value);

  /// Same dtype, shape and bytes.
  friend bool operator==(const Array& a, const Array& b);

 private:
  friend struct DeviceBytes;
  void check_type(DType wanted, std::size_t alignment) const;
  const Array& fetched() const;
  Array own_on_host() const;

  DType dtype_ = DType::f32;
  std::vector<std::int64_t> shape_;
  std::int64_t size_ = 0;
  std::span<const std::byte> bytes_;  // of a device: its addresses
  std::shared_ptr<const void> owner_;
  std::byte* writable_ = nullptr;
  std::shared_ptr<const DeviceBytes> remote_;  // null: on the host
};

template <class T>
std::span<const T> Array::values() const& {
  check_type(dtype_of<T>, alignof(T));
  return {reinterpret_cast<const T*>(bytes().data()), static_cast<std::size_t>(size_)};
}

template <class T>
std::span<T> Array::mutable_values() {
  check_type(dtype_of<T>, alignof(T));
  return {reinterpret_cast<T*>(mutable_bytes().data()), static_cast<std::size_t>(size_)};
}

template <class T>
Array Array::of(std::vector<std::int64_t> shape, std::span<const T> values) {
  Array array(dtype_of<T>, std::move(shape));
  if (array.size() != static_cast<std::int64_t>(values.size()))
    fail("array: {} values for a shape of {} elements", values.size(), array.size());
  std::copy(values.begin(), values.end(), array.mutable_values<T>().begin());
  return array;
}

}  // namespace rlx
