// Arrays on devices, as users see them.
#include "runtime/memory/device_array.h"

#include "backends/backend.h"
#include "rlx/session.h"
#include "runtime/memory/storage.h"

namespace rlx {

Array DeviceBytes::shown(Array here, const Backend& on) {
  if (!on.memory()) return here;
  here.remote_ = std::make_shared<DeviceBytes>(on, std::move(here.owner_));
  here.owner_ = here.remote_;
  return here;
}

Array DeviceBytes::inner(const Array& array) {
  Array here = array;
  if (here.remote_) here.owner_ = std::exchange(here.remote_, nullptr)->memory;
  return here;
}

const Array& Array::fetched() const {
  const std::scoped_lock lock(remote_->mutex);
  Array& copy = remote_->copy;
  if (copy.rank() == 0 && copy.size() == 0) copy = own_on_host();
  return copy;
}

Array Array::own_on_host() const { return Storage(remote_->backend).take(DeviceBytes::inner(*this)); }

Device Array::device() const { return remote_ ? Device(remote_->backend) : Device::cpu(); }

Array Array::to(const Device& device) const {
  if (this->device() == device) return *this;
  const Storage storage(device.backend());
  const auto here = storage.from_device(*this);
  if (here) return DeviceBytes::shown(*here, device.backend());
  return DeviceBytes::shown(storage.put(remote_ ? own_on_host() : *this), device.backend());
}

}  // namespace rlx
