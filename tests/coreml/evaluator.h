#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

namespace rlx::test {

/// Whether PyPI's coremltools is there, which ctest's coreml_environment fetches.
inline bool has_coremltools() {
  const char* const python = std::getenv("RLX_COREML_PYTHON");
  return python && std::getenv("RLX_COREML_EVALUATOR") && std::filesystem::exists(python);
}

/// Runs every FOLDER/*/model.mlpackage on the arrays beside it; see mil_evaluator.py.
inline void run_packages(const std::filesystem::path& folder) {
  const std::string command =
      fmt::format("'{}' '{}' '{}'", std::getenv("RLX_COREML_PYTHON"), std::getenv("RLX_COREML_EVALUATOR"), folder.string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace rlx::test
