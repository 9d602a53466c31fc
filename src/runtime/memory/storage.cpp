#include "runtime/memory/storage.h"

#include <algorithm>
#include <cstring>

#include "backends/backend.h"
#include "base/files/mapped_file.h"
#include "base/memory/page_pieces.h"
#include "ir/array_type.h"

namespace rlx {

Storage::Storage(const Backend& backend, bool others) : backend_(&backend), device_(backend.memory()), others_(others) {}

Array Storage::make(DType dtype, std::vector<std::int64_t> shape) const {
  if (on_host()) return {dtype, std::move(shape)};
  const std::int64_t bytes = array_bytes(dtype, shape);
  auto memory = device_->allocate(bytes);
  const std::span<const std::byte> all(memory.get(), static_cast<std::size_t>(bytes));
  return {dtype, std::move(shape), all, std::move(memory)};
}

Array Storage::zeros(DType dtype, std::vector<std::int64_t> shape) const {
  Array array = make(dtype, std::move(shape));
  if (!on_host() && !array.bytes().empty()) device_->clear(address(array), std::ssize(array.bytes()));
  return array;
}

Array Storage::make_lasting(const Type& type) const {
  std::vector<std::int64_t> shape = static_shape(type);
  const auto bytes = static_cast<std::size_t>(array_bytes(type.dtype, shape));
  if (!on_host() || bytes == 0) return make(type.dtype, std::move(shape));
  const std::shared_ptr<std::byte> memory = take_piece(bytes);
  const std::span<const std::byte> all(memory.get(), bytes);
  return {type.dtype, std::move(shape), all, memory};
}

Array Storage::copy_of(const Array& here) const {
  Array own = make(here.dtype(), here.shape());
  copy(address(own), here.bytes());
  return own;
}

Array Storage::admit(const Array& array, std::string_view what, std::string_view name) const {
  const Backend* const from = DeviceBytes::backend_of(array);
  if (!from || is_here(array)) return array;
  if (!others_)
    fail("{} '{}': its bytes are on {}, the session computes on {}, and copies nothing by way of the host (Array::to does)", what, name,
         from->name(), backend_->name());
  const std::optional<Array> here = from_device(array);
  return here ? shown(*here) : DeviceBytes::on_host(array);
}

std::optional<Array> Storage::from_device(const Array& array) const {
  const Backend* const from = DeviceBytes::backend_of(array);
  if (!device_ || !from || from == backend_) return std::nullopt;
  const std::span<const std::byte> there = DeviceBytes::place(array);
  auto memory = device_->copy_from(*from->memory(), there.data(), std::ssize(there));
  if (!memory) return std::nullopt;
  const std::span<const std::byte> bytes(memory.get(), there.size());
  return Array(array.dtype(), array.shape(), bytes, std::move(memory));
}

Array Storage::put(const Array& array) const {
  if (on_host()) return array;
  if (is_here(array)) return DeviceBytes::inner(array);
  if (auto here = from_device(array)) return *std::move(here);
  Array here = make(array.dtype(), array.shape());
  put(array, address(here));
  return here;
}

Array Storage::take(const Array& here) const {
  if (on_host()) return here;
  Array array(here.dtype(), here.shape());
  take(here, array.mutable_bytes());
  return array;
}

void Storage::put(const Array& array, std::byte* to) const {
  if (array.bytes().empty()) return;
  if (on_host()) std::memcpy(to, array.bytes().data(), array.bytes().size());
  else device_->upload(to, array.bytes());
}

void Storage::take(const Array& here, std::span<std::byte> to) const {
  if (to.empty()) return;
  if (on_host()) std::memcpy(to.data(), here.bytes().data(), to.size());
  else device_->download(to, here.bytes().data());
}

void Storage::copy(std::byte* to, std::span<const std::byte> from) const {
  if (from.empty() || to == from.data()) return;
  if (on_host()) std::memcpy(to, from.data(), from.size());
  else device_->copy(to, from.data(), std::ssize(from));
}

Array Storage::put_shared(const Array& array) {
  if (on_host() || is_here(array)) return put(array);
  const std::scoped_lock lock(mutex_);
  Put& known = put_[array.bytes().data()];
  const std::shared_ptr<const void> from = known.from.lock(), to = known.to.lock();
  if (from && from == array.owner() && to && known.bytes.size() == array.bytes().size())
    return {array.dtype(), array.shape(), known.bytes, to};
  std::erase_if(put_, [&](const auto& entry) { return &entry.second != &known && entry.second.to.expired(); });
  auto wrapped = array.owner() ? device_->wrap(array.bytes(), array.owner()) : nullptr;
  Array here = wrapped ? Array(array.dtype(), array.shape(), {wrapped.get(), array.bytes().size()}, wrapped) : put(array);
  if (!wrapped) release_mapped_pages(array.bytes());  // or a file's weights would be in memory twice
  known = {array.owner(), here.owner(), here.bytes()};
  return here;
}

void Storage::forget(const Array& array) {
  const std::scoped_lock lock(mutex_);
  put_.erase(address(array));
}

}  // namespace rlx
