#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "formats/temporary_folder.h"
#include "rlx/ops.h"
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

  /// That the time of work is the device's own: what the host does meanwhile does not count.
  void expect_own_clock() const {
    using Clock = std::chrono::steady_clock;
    Graph graph("negated");
    graph.output("y", -graph.input("x", {4}, f32));
    Executable negated = session().compile(graph);
    const std::vector<float> values{1, -2, 3, -4};
    const Array x = Array::of<float>({4}, values);
    negated.run({{"x", x}});
    const auto begin = Clock::now();
    const double seconds = memory().seconds([&] {
      const Array y = negated.run({{"x", x}})[0];
      EXPECT_EQ(y.floats(), (std::vector<float>{-1, 2, -3, 4}));
      for (const auto end = Clock::now() + std::chrono::milliseconds(50); Clock::now() < end;) continue;
    });
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds + 0.05, std::chrono::duration<double>(Clock::now() - begin).count());
  }
};

}  // namespace rlx::test
