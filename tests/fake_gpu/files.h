#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

// What drivers without a GPU share: folders in which kernels are compiled.
namespace rlx::test {

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rlx-gpu-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

/// Makes kernels.so of the folder's kernels.cpp, with RLX_FAKE_GPU_FLAGS if that is set; the compiler's log where it refuses.
inline std::string compile_library(const std::filesystem::path& folder, const std::string& compiler) {
  const std::filesystem::path log = folder / "log";
  const char* const more = std::getenv("RLX_FAKE_GPU_FLAGS");
  const std::string command = "LD_PRELOAD= " + compiler + " " + std::string(more ? more : "") +
                              " -w -ffp-contract=off -fno-math-errno -fPIC -shared " + (folder / "kernels.cpp").string() + " -o " +
                              (folder / "kernels.so").string() + " -lm > " + log.string() + " 2>&1";
  return std::system(command.c_str()) == 0 ? std::string() : contents(log);
}

}  // namespace rlx::test
