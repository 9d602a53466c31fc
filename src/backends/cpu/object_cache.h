#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::cpu {

/// Compiled objects on disk, one file each, named by the hash of what they were made from. A file that is cut short, foreign or
/// damaged counts as absent: every file carries the hash of its key and of its bytes.
class ObjectCache {
 public:
  explicit ObjectCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The object stored under `key` (the text and flags it was made from), or nothing.
  std::optional<std::vector<std::byte>> find(std::string_view key) const;
  /// Stores an object; false when the folder cannot be written, with the reason in `reason`.
  bool store(std::string_view key, std::string_view object, std::string& reason) const;

 private:
  std::filesystem::path file_of(std::string_view key) const;
  std::filesystem::path folder_;  // empty: nothing is kept
};

}  // namespace rlx::cpu
