#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "rlx/array.h"

namespace rlx {

struct Backend;

/// What makes an array one of a device with memory of its own, in the eyes of who reads it. Inside of runs arrays go without: their bytes
/// are the device's addresses.
struct DeviceBytes {
  DeviceBytes(const Backend& on, std::shared_ptr<const void> kept) : backend(on), memory(std::move(kept)) {}

  /// As users see it, of an array as runs see it.
  static Array shown(Array here, const Backend& on);
  /// The reverse; the same array where it lies on the host.
  static Array inner(const Array& array);
  /// Null: the array lies on the host.
  static const Backend* backend_of(const Array& array) { return array.remote_ ? &array.remote_->backend : nullptr; }
  /// What is read of one that lies on a device.
  static const Array& on_host(const Array& array) { return array.fetched(); }
  /// Its bytes where they lie.
  static std::span<const std::byte> place(const Array& array) { return array.bytes_; }

  const Backend& backend;
  std::shared_ptr<const void> memory;  // of the device; who keeps the array's owner keeps all of this
  mutable std::mutex mutex;
  mutable Array copy;  // on the host; no value: nobody asked for it
};

}  // namespace rlx
