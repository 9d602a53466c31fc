#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

namespace rlx {

/// A regular file mapped for reading; the bytes stay in place and valid while the object lives, also after a move.
/// Another process that truncates the file while it is mapped makes reads past the new end fault (SIGBUS).
class MappedFile {
 public:
  /// An empty file gives no bytes. Throws Error naming the file and the system's reason; directories, pipes and devices are
  /// refused.
  static MappedFile open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

/// Gives back the memory of the pages with these bytes where they belong to a mapped file: whoever reads them next gets them from the file
/// again. Of other bytes nothing happens.
void release_mapped_pages(std::span<const std::byte> bytes);

}  // namespace rlx
