#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/memory/pages.h"

namespace rlx::cpu {

struct FreeAligned {
  std::size_t mapped = 0;  // bytes of pages; 0: from the heap
  void operator()(std::byte* data) const { mapped > 0 ? UnmapPages{mapped}(data) : std::free(data); }
};

/// Uninitialised memory that starts on a cache line; large pieces are huge pages, as streaming weights else spends its time in page walks.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes) {
    if (bytes == 0) return;
    if (bytes >= huge_page_bytes) {
      Pages pages = map_pages(bytes, Backing::reserved);
      const std::size_t mapped = pages.get_deleter().bytes;
      data_ = {pages.release(), {mapped}};
    } else {
      data_ = {static_cast<std::byte*>(std::aligned_alloc(cache_line, (bytes + cache_line - 1) / cache_line * cache_line)), {}};
    }
    if (!data_) throw std::bad_alloc();
  }

  std::byte* data() const { return data_.get(); }

  static constexpr std::size_t cache_line = 64;

 private:
  std::unique_ptr<std::byte, FreeAligned> data_;
};

}  // namespace rlx::cpu
