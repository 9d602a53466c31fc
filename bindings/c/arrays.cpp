// Errors and arrays of the C interface.
#include <cstring>

#include "handles.h"
#include "rlx/version.h"

namespace rlx::c {
namespace {

thread_local std::string last_error;

static_assert(RLX_C128 == static_cast<int>(DType::c128) && RLX_BOOL == static_cast<int>(DType::boolean) &&
              RLX_I8 == static_cast<int>(DType::i8));

std::vector<std::int64_t> sizes_of(const std::int64_t* shape, std::size_t rank) {
  if (rank > 0) given(shape, "the shape");
  return {shape, shape + rank};
}

/// Calls the caller's release when the last user of the memory is gone.
std::shared_ptr<const void> released_by(void (*release)(void*), void* context) {
  return {context, [release](const void* kept) {
            if (release != nullptr) release(const_cast<void*>(kept));
          }};
}

/// The bytes of an array of that type, by an array that is thrown away unless it has none.
std::size_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) fail("array: the size {} does not fit", size);
  }
  std::int64_t bits = 0;
  if (__builtin_mul_overflow(count, static_cast<std::int64_t>(info(dtype).bits), &bits)) fail("array: {} elements do not fit", count);
  return static_cast<std::size_t>((bits + 7) / 8);
}

}  // namespace

void keep_error(const char* text) noexcept {
  try {
    last_error = text;
  } catch (...) {
    last_error.clear();
  }
}

DType dtype_of(rlx_dtype dtype) {
  const auto i = static_cast<std::size_t>(dtype);
  if (i >= dtype_table.size()) fail("there is no element type {} (allowed: 0..{})", i, dtype_table.size() - 1);
  return static_cast<DType>(i);
}

}  // namespace rlx::c

using namespace rlx::c;

const char* rlx_last_error(void) { return last_error.c_str(); }
const char* rlx_version(void) { return rlx::version.data(); }

rlx_status rlx_array_new(rlx_dtype dtype, const std::int64_t* shape, std::size_t rank, const void* data, rlx_array** out) {
  return guarded([&] {
    rlx::Array array(dtype_of(dtype), sizes_of(shape, rank));
    const auto bytes = array.mutable_bytes();
    if (data != nullptr && !bytes.empty()) std::memcpy(bytes.data(), data, bytes.size());
    give(out, "the place for the array", std::make_unique<rlx_array>(std::move(array)));
  });
}

rlx_status rlx_array_borrow(rlx_dtype dtype, const std::int64_t* shape, std::size_t rank, const void* data, void (*release)(void*),
                            void* context, rlx_array** out) {
  return guarded([&] {
    auto owner = released_by(release, context);
    const rlx::DType type = dtype_of(dtype);
    auto sizes = sizes_of(shape, rank);
    const std::size_t bytes = bytes_of(type, sizes);
    if (bytes > 0) given(static_cast<const char*>(data), "the data");
    give(out, "the place for the array",
         std::make_unique<rlx_array>(rlx::Array(type, std::move(sizes), {static_cast<const std::byte*>(data), bytes}, std::move(owner))));
  });
}

void rlx_array_free(rlx_array* array) { delete array; }
rlx_dtype rlx_array_dtype(const rlx_array* array) { return static_cast<rlx_dtype>(array->array.dtype()); }
std::size_t rlx_array_rank(const rlx_array* array) { return array->array.shape().size(); }
const std::int64_t* rlx_array_shape(const rlx_array* array) { return array->array.shape().data(); }
const void* rlx_array_data(const rlx_array* array) { return array->array.bytes().data(); }
std::size_t rlx_array_bytes(const rlx_array* array) { return array->array.bytes().size(); }
