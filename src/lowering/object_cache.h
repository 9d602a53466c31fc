#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// Where compiled kernels are kept between processes: RLX_CACHE if set (empty: nowhere), else XDG_CACHE_HOME/rlx, else ~/.cache/rlx.
/// A relative XDG_CACHE_HOME does not count, as the XDG Base Directory Specification says.
std::filesystem::path default_cache_folder();

/// Compiled objects on disk, one file each, named by the hash of what they were made from. A file that is cut short, foreign or
/// damaged counts as absent: every file carries the hash of its key and of its bytes. The folder may be shared by processes; once its
/// objects exceed `most_bytes`, those that were written first are removed. What is found is run as code: a folder that others than its
/// user (or root) own or may write to is not used, and neither are their files. Thread-safe.
class ObjectCache {
 public:
  static constexpr std::int64_t default_most_bytes = std::int64_t{1} << 30;

  explicit ObjectCache(std::filesystem::path folder, std::int64_t most_bytes = default_most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes), unswept_(most_bytes) {}

  /// The object stored under `key` (the text and flags it was made from), or nothing.
  /// `reason`: why what may be there is not taken; else it is left as it is.
  std::optional<std::vector<std::byte>> find(std::string_view key, std::string& reason) const;
  /// Stores an object; false when the folder cannot be written, or is not used, with the reason in `reason`.
  bool store(std::string_view key, std::string_view object, std::string& reason);

 private:
  std::filesystem::path file_of(std::string_view key) const;
  std::string refusal() const;
  void remove_oldest() const;

  std::filesystem::path folder_;  // empty: nothing is kept
  std::int64_t most_bytes_;
  std::atomic<std::int64_t> unswept_;  // bytes stored since the folder was last looked through; at first all it may hold
};

}  // namespace rlx
