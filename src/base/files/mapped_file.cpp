#include "base/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files/near_files.h"
#include "rlx/error.h"

namespace rlx {
namespace {

/// Closes the descriptor when the scope ends; the mapping does not need it.
struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void fail_with_errno(const std::filesystem::path& path, std::string_view action) {
  const int reason = errno;
  const std::string near = reason == ENOENT ? near_files(path) : "";
  fail("{}: {}: {}{}", path.string(), action, std::generic_category().message(reason), near);
}

/// The mappings of the process.
struct Mappings {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> sizes;  // by their first byte

  static Mappings& all() {
    static Mappings* const mappings = new Mappings;  // never destroyed: files may be closed later
    return *mappings;
  }
};

std::uintptr_t address_of(const std::byte* byte) { return reinterpret_cast<std::uintptr_t>(byte); }

}  // namespace

void release_mapped_pages(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)), begin = address_of(bytes.data()), end = begin + bytes.size();
  Mappings& mappings = Mappings::all();
  const std::scoped_lock lock(mappings.mutex);  // so that the mapping stays
  auto after = mappings.sizes.upper_bound(begin);
  if (after == mappings.sizes.begin() || end > std::prev(after)->first + std::prev(after)->second) return;
  const std::uintptr_t first = begin / page * page;  // mappings begin and end with pages
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

MappedFile MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to waits for ever, before it can be refused.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) fail_with_errno(path, "cannot open");
  struct stat status{};
  if (::fstat(file.number, &status) != 0) fail_with_errno(path, "cannot read its size");
  if (S_ISDIR(status.st_mode)) fail("{}: is a directory, a file is needed", path.string());
  if (!S_ISREG(status.st_mode)) fail("{}: is not a regular file", path.string());
  if (status.st_size == 0) return MappedFile({});
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED) fail_with_errno(path, "cannot map");
  MappedFile mapped({static_cast<const std::byte*>(address), size});
  Mappings& mappings = Mappings::all();
  const std::scoped_lock lock(mappings.mutex);
  mappings.sizes.emplace(address_of(mapped.bytes_.data()), size);
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  Mappings& mappings = Mappings::all();
  const std::scoped_lock lock(mappings.mutex);
  mappings.sizes.erase(address_of(bytes_.data()));
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace rlx
