#include "rlx/result_memory.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/memory/pages.h"
#include "rlx/error.h"

namespace rlx {
namespace {

struct ResultPages {
  Pages pages;
  std::size_t bytes = 0;
};

/// Blocks that nobody holds, the oldest in front.
class IdleBlocks {
 public:
  static constexpr std::size_t most_blocks = 16, most_bytes = std::size_t{512} << 20;

  /// One that is large enough and not much larger; without pages where there is none.
  ResultPages take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    const auto found =
        std::ranges::find_if(blocks_, [&](const ResultPages& block) { return bytes <= block.bytes && block.bytes / 2 <= bytes; });
    if (found == blocks_.end()) return {};
    ResultPages taken = std::move(*found);
    blocks_.erase(found);
    held_ -= taken.bytes;
    return taken;
  }

  void put(ResultPages block) {
    std::vector<ResultPages> unneeded;  // given back to the system without the lock
    const std::scoped_lock lock(mutex_);
    held_ += block.bytes;
    blocks_.push_back(std::move(block));
    while (blocks_.size() > most_blocks || held_ > most_bytes) {
      held_ -= blocks_.front().bytes;
      unneeded.push_back(std::move(blocks_.front()));
      blocks_.erase(blocks_.begin());
    }
  }

 private:
  std::mutex mutex_;
  std::vector<ResultPages> blocks_;
  std::size_t held_ = 0;
};

IdleBlocks& idle_blocks() {
  static auto* one = new IdleBlocks;  // not freed: results may outlive what is static
  return *one;
}

}  // namespace

std::shared_ptr<std::byte> result_memory(std::size_t bytes) {
  ResultPages block = idle_blocks().take(bytes);
  if (!block.pages) block = {map_pages(bytes, Backing::reserved), bytes};
  if (!block.pages) fail("memory: {} MiB for a result cannot be had", bytes >> 20);
  std::byte* const data = block.pages.get();
  auto held = std::make_shared<ResultPages>(std::move(block));
  return {data, [held](std::byte*) { idle_blocks().put(std::move(*held)); }};
}

}  // namespace rlx
