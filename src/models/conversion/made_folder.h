#pragma once
#include <filesystem>
#include <system_error>

#include "rlx/error.h"

namespace rlx {

/// A folder to be filled; one that it made itself it removes again, unless something is in it.
class MadeFolder {
 public:
  explicit MadeFolder(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    made_ = std::filesystem::create_directory(path, error);
    if (error || !std::filesystem::is_directory(path)) fail("{}: the folder cannot be made: {}", path.string(), error.message());
  }
  ~MadeFolder() {
    std::error_code error;
    if (made_) std::filesystem::remove(path_, error);
  }
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;

 private:
  std::filesystem::path path_;
  bool made_ = false;
};

}  // namespace rlx
