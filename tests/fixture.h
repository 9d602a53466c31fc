#pragma once
#include <filesystem>
#include <string_view>

namespace rlx::test {

/// The path of a file or folder below tests/fixtures, e.g. fixture("hf/bert/config.json").
inline std::filesystem::path fixture(std::string_view name) { return std::filesystem::path(RLX_FIXTURES) / name; }

}  // namespace rlx::test
