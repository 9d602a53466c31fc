#pragma once
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "backends/backend.h"
#include "formats/temporary_folder.h"
#include "rlx/session.h"

namespace rlx::test {

/// Tests on a device with memory of its own.
class DeviceTest : public testing::Test {
 protected:
  virtual const Backend& backend() const = 0;
  DeviceMemory& memory() const { return *backend().memory(); }
  Session session() const { return Session(Device(backend()), {.cache_folder = std::filesystem::path()}); }

  std::shared_ptr<std::byte> uploaded(std::span<const float> values) const {
    auto bytes = memory().allocate(static_cast<std::int64_t>(values.size_bytes()));
    memory().upload(bytes.get(), std::as_bytes(values));
    return bytes;
  }
  std::vector<float> downloaded(const std::byte* from, std::size_t count) const {
    std::vector<float> values(count);
    memory().download(std::as_writable_bytes(std::span(values)), from);
    return values;
  }
};

}  // namespace rlx::test
