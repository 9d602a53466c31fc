// DLPack tensors of the C interface. The structs are those of dlpack.h 1.0 without versions, which all libraries take.
#include <memory>

#include "handles.h"

namespace rlx::c {
namespace {

struct DLDevice {
  std::int32_t type, id;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t rank;
  DLDataType dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
constexpr std::int32_t on_cpu = 1;

}  // namespace
}  // namespace rlx::c

struct DLManagedTensor {
  rlx::c::DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};

namespace rlx::c {
namespace {

/// What an array is to DLPack, for as long as somebody has the tensor.
struct Shared {
  DLManagedTensor managed = {};
  Array array = {};
  std::vector<std::int64_t> shape = {};
};

std::uint8_t code_of(DType dtype) {
  if (dtype == bf16) return 4;
  if (dtype == f8e4m3) return 10;
  if (dtype == f8e5m2) return 12;
  switch (info(dtype).kind) {
    case DTypeClass::signed_int: return 0;
    case DTypeClass::unsigned_int: return 1;
    case DTypeClass::floating: return 2;
    case DTypeClass::complex: return 5;
    case DTypeClass::boolean: return 6;
  }
  return 0;
}

DType element_type_of(DLDataType given) {
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (given.bits >= 8 && info(dtype).bits == given.bits && code_of(dtype) == given.code && given.lanes == 1) return dtype;
  }
  fail("dlpack: there is no element type of code {}, {} bits and {} lanes", given.code, given.bits, given.lanes);
}

/// Its bytes, where its elements lie row by row.
std::size_t dense_bytes(const DLTensor& tensor, DType dtype) {
  std::int64_t count = 1;
  for (std::int32_t i = tensor.rank; i-- > 0;) {
    if (tensor.strides != nullptr && tensor.shape[i] != 1 && tensor.strides[i] != count)
      fail("dlpack: the stride of axis {} is {} (allowed: {}, that of row-major elements)", i, tensor.strides[i], count);
    if (tensor.shape[i] < 0 || __builtin_mul_overflow(count, tensor.shape[i], &count))
      fail("dlpack: the size {} does not fit", tensor.shape[i]);
  }
  if (__builtin_mul_overflow(count, static_cast<std::int64_t>(info(dtype).bits) / 8, &count)) fail("dlpack: the elements do not fit");
  return static_cast<std::size_t>(count);
}

std::shared_ptr<const void> taken(DLManagedTensor* tensor) {
  return {tensor, [tensor](const void*) {
            if (tensor->deleter != nullptr) tensor->deleter(tensor);
          }};
}

}  // namespace
}  // namespace rlx::c

using namespace rlx::c;

rlx_status rlx_array_from_dlpack(DLManagedTensor* managed, rlx_array** out) {
  return guarded([&] {
    const DLTensor& tensor = given(managed, "the tensor").tensor;
    auto owner = taken(managed);
    if (tensor.device.type != on_cpu) rlx::fail("dlpack: the tensor lies on a device of type {} (allowed: 1, the CPU)", tensor.device.type);
    const rlx::DType dtype = element_type_of(tensor.dtype);
    const std::size_t bytes = dense_bytes(tensor, dtype);
    if (bytes > 0) given(static_cast<const char*>(tensor.data), "the data");
    const auto* data = static_cast<const std::byte*>(tensor.data) + (bytes > 0 ? tensor.byte_offset : 0);
    std::vector<std::int64_t> shape(tensor.shape, tensor.shape + tensor.rank);
    give(out, "the place for the array", std::make_unique<rlx_array>(rlx::Array(dtype, std::move(shape), {data, bytes}, std::move(owner))));
  });
}

rlx_status rlx_array_to_dlpack(const rlx_array* array, DLManagedTensor** out) {
  return guarded([&] {
    const rlx::Array& from = given(array, "the array").array;
    const auto bits = static_cast<std::uint8_t>(rlx::info(from.dtype()).bits);
    if (bits < 8) rlx::fail("dlpack: elements of {} are packed (allowed: those of 8 bits and more)", rlx::name(from.dtype()));
    auto shared = std::make_unique<Shared>(Shared{.array = from, .shape = from.shape()});
    auto* const data = const_cast<std::byte*>(shared->array.bytes().data());
    shared->managed = {{data,
                        {on_cpu, 0},
                        static_cast<std::int32_t>(shared->shape.size()),
                        {code_of(from.dtype()), bits, 1},
                        shared->shape.data(),
                        nullptr,
                        0},
                       shared.get(),
                       [](DLManagedTensor* self) { delete static_cast<Shared*>(self->context); }};
    given(out, "the place for the tensor") = &shared->managed;
    shared.release();
  });
}
