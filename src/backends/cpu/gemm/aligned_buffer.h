#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace rlx::cpu {

/// Uninitialised memory that starts on a cache line; large pieces on a huge page, as streaming weights else spends its time in page walks.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes) {
    const std::size_t alignment = bytes >= huge_page ? huge_page : cache_line;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    if (bytes == 0) return;
    if (rounded < bytes) throw std::bad_alloc();
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
    if (!data_) throw std::bad_alloc();
#ifdef __linux__
    if (alignment == huge_page) madvise(data_.get(), rounded, MADV_HUGEPAGE);  // a wish: refusal costs speed only
#endif
  }

  std::byte* data() const { return data_.get(); }

  static constexpr std::size_t cache_line = 64;

 private:
  static constexpr std::size_t huge_page = 2 << 20;
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace rlx::cpu
