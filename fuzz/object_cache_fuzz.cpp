#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "fuzz_folder.h"
#include "lowering/object_cache.h"

/// The input is a file of the cache. It counts as absent, unless it has the hashes of its key and of what it ends with.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  static rlx::ObjectCache cache(folder.path());
  static const std::string file = [] {
    std::string reason;
    if (!cache.store("key", "object", reason)) __builtin_trap();
    return std::filesystem::directory_iterator(folder.path())->path().filename().string();
  }();
  folder.write(file, {reinterpret_cast<const char*>(data), size});
  std::string reason;
  const auto found = cache.find("key", reason);
  if (found && (found->size() >= size || !std::ranges::equal(*found, std::as_bytes(std::span(data, size)).last(found->size()))))
    __builtin_trap();
  return 0;
}
