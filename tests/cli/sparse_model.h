#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "formats/temporary_folder.h"

namespace rlx::test {

/// A GGUF file of one matrix of 128 MiB, all zeros, which takes no room on the disk.
inline void write_sparse_model(const std::filesystem::path& path) {
  constexpr std::uint64_t columns = 4096, rows = 8192;
  std::string text = "GGUF";
  const auto number = [&](auto value) { text.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto string = [&](std::string_view value) {
    number(std::uint64_t{value.size()});
    text += value;
  };
  number(std::uint32_t{3});
  number(std::uint64_t{1});
  number(std::uint64_t{0});
  string("blk.0.attn_q.weight");
  number(std::uint32_t{2});
  number(columns);
  number(rows);
  number(std::uint32_t{0});
  number(std::uint64_t{0});
  write_text(path, text);
  std::filesystem::resize_file(path, (text.size() + 31) / 32 * 32 + columns * rows * sizeof(float));
}

}  // namespace rlx::test
