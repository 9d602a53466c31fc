// Every file of the malformed folders, as their manifests describe them: valid ones load, all others give one clear line.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>

#include "fixture.h"
#include "formats/gguf/gguf.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "formats/tensors/npy.h"
#include "formats/tensors/safetensors.h"

namespace {
std::atomic<std::size_t> largest_allocation = 0;
}

// Counts what the readers ask for: a size out of a broken file must never reach the allocator. Not inlined, because the compiler
// takes an inlined malloc that is freed by `operator delete` for a mistake. It counts in all tests of this folder, which are linked
// together.
[[gnu::noinline]] void* operator new(std::size_t size) {
  std::size_t largest = largest_allocation;
  while (size > largest && !largest_allocation.compare_exchange_weak(largest, size)) {
  }
  if (void* memory = std::malloc(std::max<std::size_t>(size, 1))) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace rlx {
namespace {

using Reader = std::function<void(const std::filesystem::path&)>;

constexpr std::size_t allocation_limit = std::size_t{4} << 20;  // the largest file has 240 kB

void check_refused(const Reader& read, const std::filesystem::path& path, const json::Value& row) {
  const std::string message = test::error_of([&] { read(path); });
  EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
  const std::string rest = message.substr(std::min(message.size(), path.string().size()));
  for (const json::Value& word : row["mention"]) EXPECT_NE(rest.find(word.get<std::string>()), std::string::npos) << message;
  EXPECT_LE(rest.size(), 500u) << message;
  for (char c : message) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20) << "a control character in: " << message;
}

/// Goes through the manifest of `folder`, and through the folder: no file may be left out.
void check_folder(std::string_view folder, std::string_view extension, const Reader& read) {
  const std::filesystem::path root = test::fixture(folder);
  const json::Value manifest = json::read_file(root / "manifest.json");
  for (const json::Value& row : manifest["files"]) {
    SCOPED_TRACE(row["file"].get<std::string>() + ": " + row["wrong"].get<std::string>());
    const std::filesystem::path path = root / row["file"].get<std::string>();
    largest_allocation = 0;
    if (row.contains("valid")) EXPECT_NO_THROW(read(path));
    else check_refused(read, path, row);
    EXPECT_GT(largest_allocation.load(), 0u) << "the counter does not see the library's allocations";
    EXPECT_LE(largest_allocation.load(), allocation_limit);
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) files += entry.path().extension() == extension ? 1 : 0;
  EXPECT_EQ(files, manifest["files"].size());
  EXPECT_GT(files, 20u);
}

TEST(Malformed, SafetensorsFilesGiveOneClearError) {
  check_folder("safetensors/malformed", ".safetensors", [](const auto& path) { SafetensorsFile::open(path); });
}

TEST(Malformed, GgufFilesGiveOneClearError) {
  check_folder("gguf/malformed", ".gguf", [](const auto& path) { GgufFile::open(path); });
}

TEST(Malformed, NpyFilesGiveOneClearError) {
  check_folder("npy/malformed", ".npy", [](const auto& path) { load_npy(path); });
}

}  // namespace
}  // namespace rlx
