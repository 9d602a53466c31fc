#pragma once
#include <gtest/gtest.h>

#include "backends/mlx/backend.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {

/// Tests on MLX's CPU.
class MlxTest : public testing::Test {
 protected:
  void SetUp() override {
    if (mlx::backends().empty()) GTEST_SKIP() << "needs MLX: " << mlx::missing();
  }
  static Session session(SessionOptions options = {}) {
    options.cache_folder = std::filesystem::path();
    return Session(Device::named("mlx:cpu"), options);
  }
  static Session session_of_mode(const std::string& mode) {
    SessionOptions options;
    options.graph_mode = mode;
    return session(std::move(options));
  }
};

}  // namespace rlx::test
