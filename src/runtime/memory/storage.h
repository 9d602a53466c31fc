#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/memory/device_array.h"

namespace rlx {

struct DeviceMemory;

/// Where the arrays of runs lie: in the host's memory, or in that of a device, whose addresses only the device follows.
class Storage {
 public:
  /// `others`: whether arrays of other devices may be copied.
  explicit Storage(const Backend& backend, bool others = true);

  bool on_host() const { return device_ == nullptr; }
  /// Only where it is not the host.
  DeviceMemory& device() const { return *device_; }

  /// Zeros on the host, any values on a device.
  Array make(DType dtype, std::vector<std::int64_t> shape) const;
  Array zeros(DType dtype, std::vector<std::int64_t> shape) const;
  /// Any values, in memory for what stays.
  Array make_lasting(const Type& type) const;
  Array copy_of(const Array& here) const;
  /// An array that a user gives, as long as it is his: on the host, or shown as one of here. Throws Error where it is of another device,
  /// and must not be copied; `what` names it.
  Array admit(const Array& array, std::string_view what, std::string_view name) const;
  /// An array of here as users see it.
  Array shown(const Array& here) const { return DeviceBytes::shown(here, *backend_); }
  /// An array of the host here, and one of here on the host; the same array where here is the host, or where it is shown as one of here.
  Array put(const Array& array) const;
  Array take(const Array& here) const;
  /// An array of another device here, by what connects the two; no value: nothing does.
  std::optional<Array> from_device(const Array& array) const;
  /// As `put` and `take`, into memory that is there.
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
  bool is_here(const Array& array) const { return device_ && DeviceBytes::backend_of(array) == backend_; }

  const Backend* backend_;
  DeviceMemory* device_;  // null: the host
  bool others_;
  std::mutex mutex_;
  std::map<const std::byte*, Put> put_;  // by the host's bytes
};

/// Where the bytes of an array are: on the host or on its device.
inline std::byte* address(const Array& array) { return const_cast<std::byte*>(DeviceBytes::place(array).data()); }

}  // namespace rlx
