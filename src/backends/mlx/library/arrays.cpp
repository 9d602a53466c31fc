#include "backends/mlx/library/arrays.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <limits>

#include "ir/array_type.h"

namespace rlx::mlx {
namespace {

/// By its type the owner of a result is told from others.
struct LetGo {
  void operator()(mx::array* array) const { delete array; }
};

std::int64_t bytes_of(const mx::Shape& shape, mx::Dtype dtype) {
  std::int64_t bytes = dtype.size();
  for (const auto size : shape) bytes *= size;
  return bytes;
}

constexpr std::size_t header = sizeof(std::size_t);

/// On a CPU an MLX buffer is an address 8 bytes before its elements, where MLX reads its size. Others' memory may begin where nothing can
/// be read before.
bool has_header(const Array& array) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<std::uintptr_t>(array.bytes().data());
  return at % page >= header ||
         msync(reinterpret_cast<void*>(at / page * page - page), page, MS_ASYNC) == 0;  // fails where nothing is mapped
}

/// Memory that MLX does not own is read through such a buffer and never given to a result.
mx::array wrapped(const Array& array, mx::Shape shape, mx::Dtype dtype) {
  mx::array result(std::move(shape), dtype, nullptr, {});
  auto* const begin = const_cast<std::byte*>(array.bytes().data()) - header;
  result.set_data(mx::allocator::Data(mx::allocator::Buffer(begin), [owner = array.owner()](mx::allocator::Buffer) {}));
  result.set_status(mx::array::Status::available);
  return result;
}

mx::array copied(const Array& array, mx::Shape shape, mx::Dtype dtype) {
  mx::array result(mx::allocator::malloc(array.bytes().size()), std::move(shape), dtype);
  std::memcpy(result.data<std::byte>(), array.bytes().data(), array.bytes().size());
  return result;
}

}  // namespace

void check_memory(const mx::array& result, const mx::Device& device) {
  static const std::size_t all = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (device == mx::Device::cpu && result.nbytes() > all)
    fail("no memory for {} bytes of one result (the machine has {})", result.nbytes(), all);
}

mx::Dtype dtype_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return mx::float32;
    case DType::f16: return mx::float16;
    case DType::bf16: return mx::bfloat16;
    case DType::f64:
    case DType::c128: return mx::float64;
    case DType::i8: return mx::int8;
    case DType::i16: return mx::int16;
    case DType::i32: return mx::int32;
    case DType::i64: return mx::int64;
    case DType::u16: return mx::uint16;
    case DType::u32: return mx::uint32;
    case DType::u64: return mx::uint64;
    case DType::boolean: return mx::bool_;
    case DType::c64: return mx::complex64;
    case DType::u8:
    case DType::i4:
    case DType::u4:
    case DType::f8e4m3:
    case DType::f8e5m2: return mx::uint8;
  }
  return mx::uint8;
}

bool has(DType dtype, const mx::Device& device) {
  if (dtype == f64) return device == mx::Device::cpu;
  return !is_packed(dtype) && dtype != c128 && dtype != f8e4m3 && dtype != f8e5m2;
}

mx::Shape shape_of(const std::vector<std::int64_t>& sizes) {
  mx::Shape shape;
  for (const std::int64_t size : sizes) {
    if (size > std::numeric_limits<mx::ShapeElem>::max())
      fail("mlx: a size of {} (allowed: up to {})", size, std::numeric_limits<mx::ShapeElem>::max());
    shape.push_back(static_cast<mx::ShapeElem>(size));
  }
  return shape;
}

mx::Shape carried_shape(DType dtype, const std::vector<std::int64_t>& sizes) {
  if (is_packed(dtype)) return shape_of({array_bytes(dtype, sizes)});
  mx::Shape shape = shape_of(sizes);
  if (dtype == c128) shape.push_back(2);
  return shape;
}

mx::array array_of(const Array& array, const mx::Device& device) {
  mx::Shape shape = carried_shape(array.dtype(), array.shape());
  const mx::Dtype dtype = dtype_of(array.dtype());
  if (array.bytes().empty()) return mx::zeros(shape, dtype);
  if (const mx::array* const shown = shown_by(array); shown && shown->dtype() == dtype && shown->shape() == shape) return *shown;
  return device == mx::Device::cpu && has_header(array) ? wrapped(array, std::move(shape), dtype) : copied(array, std::move(shape), dtype);
}

Array array_from(const mx::array& evaluated, DType dtype, std::vector<std::int64_t> sizes) {
  if (!evaluated.flags().row_contiguous) fail_internal("mlx: a result has gaps");
  const std::shared_ptr<mx::array> owner(new mx::array(evaluated), LetGo{});
  const std::span bytes(evaluated.data<std::byte>(), static_cast<std::size_t>(bytes_of(evaluated.shape(), evaluated.dtype())));
  return {dtype, std::move(sizes), bytes, owner};
}

mx::array* shown_by(const Array& array) {
  const bool ours = array.owner() && std::get_deleter<LetGo>(array.owner());
  return ours ? static_cast<mx::array*>(const_cast<void*>(array.owner().get())) : nullptr;
}

}  // namespace rlx::mlx
