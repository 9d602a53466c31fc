#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "rlx/array.h"

namespace rlx {

struct DeviceMemory;

/// Where the arrays of runs lie: in the host's memory, or in that of a device, whose addresses only the device follows.
class Storage {
 public:
  /// `device`: null for the host.
  explicit Storage(DeviceMemory* device) : device_(device) {}

  bool on_host() const { return device_ == nullptr; }
  /// Only where it is not the host.
  DeviceMemory& device() const { return *device_; }

  /// Zeros on the host, any values on a device.
  Array make(DType dtype, std::vector<std::int64_t> shape) const;
  Array zeros(DType dtype, std::vector<std::int64_t> shape) const;
  Array copy_of(const Array& here) const;
  /// An array of the host here, and one of here on the host; the same array where here is the host.
  Array put(const Array& array) const;
  Array take(const Array& here) const;
  /// The same, into memory that is there.
  void put(const Array& array, std::byte* to) const;
  void take(const Array& here, std::span<std::byte> to) const;
  void copy(std::byte* to, std::span<const std::byte> from) const;

  /// As `put`, and for all who ask while one of them keeps the array and nobody has forgotten it.
  Array put_shared(const Array& array);
  /// What comes from these bytes is put anew when it is next asked for: they may have changed.
  void forget(const Array& array);

 private:
  struct Put {
    std::weak_ptr<const void> from, to;  // the owners
    std::span<const std::byte> bytes;    // here
  };
  DeviceMemory* device_;
  std::mutex mutex_;
  std::map<const std::byte*, Put> put_;  // by the host's bytes
};

/// Where the bytes of an array that a run made are.
inline std::byte* address(const Array& array) { return const_cast<std::byte*>(array.bytes().data()); }

}  // namespace rlx
