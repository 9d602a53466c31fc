#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rlx::metal {

/// Memory that the host and a GPU share.
struct Shared {
  void* handle = nullptr;     // of the driver; null: there is none
  std::byte* host = nullptr;  // where the host sees it
  std::uint64_t device = 0;   // where kernels do
};

/// Kernels that were compiled, or the compiler's log.
struct Pipelines {
  std::vector<void*> handles;
  std::string archive;  // by which they are found again without the back end of the compiler; empty: `handles` came from the one given
  std::string error;
};

/// A GPU with a queue in which everything is done in order. Calls come one at a time.
struct Gpu {
  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  virtual ~Gpu() = default;

  std::string title, version;  // of its maker; of the system, whose part the driver and the compiler are
  std::int64_t memory = 0, largest_buffer = 0;

  virtual Shared allocate(std::int64_t bytes) = 0;
  /// Whole pages of the host, as they are.
  virtual Shared wrap(std::span<std::byte> pages) = 0;
  virtual void let_go(void* memory) = 0;
  /// Without fast math. `archive`: of an earlier call with the same text on this system, or empty; one that does not fit is not taken.
  virtual Pipelines compile(const std::string& text, std::span<const std::string> names, const std::string& archive) = 0;
  virtual void let_go_kernel(void* kernel) = 0;
  /// `words`: its argument 0, which lies in up to 4096 bytes; `memories`: all that it reads and writes.
  virtual void launch(void* kernel, std::span<const std::uint64_t> words, std::span<void* const> memories, std::uint64_t groups,
                      std::uint64_t threads) = 0;
  /// Places and bytes are multiples of 4.
  virtual void copy(void* to, std::int64_t to_offset, void* from, std::int64_t from_offset, std::int64_t bytes) = 0;
  virtual void clear(void* memory, std::int64_t offset, std::int64_t bytes) = 0;
  /// Waits. Empty, or what failed since the last call.
  virtual std::string finish() = 0;
};

/// What librlx_metal has under the name `library_entry`: the glue to Metal, which is in Objective-C++ and made on macOS alone.
struct Library {
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::string missing;  // why there are none
};
using LibraryEntry = Library* (*)();
inline constexpr const char* library_entry = "rlx_open_metal";

}  // namespace rlx::metal
