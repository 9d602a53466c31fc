#pragma once
#include <cstddef>
#include <memory>
#include <span>

namespace rlx {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

struct UnmapPages {
  std::size_t bytes = 0;
  void operator()(std::byte* pages) const;
};

/// Memory of its own, zero where it was not written, and given back whole.
using Pages = std::unique_ptr<std::byte, UnmapPages>;

/// Whether the system refuses what it could not back, or finds memory for each page when that is touched.
enum class Backing : bool { reserved, as_touched };

/// At least `bytes` on a boundary of huge pages, which the system is asked to back it with where it holds one: faults on small ones cost
/// ten times what a kernel takes to write them, and streaming through them is bound by page walks. Refusal costs speed only. What is left
/// behind the last whole huge page is small ones, so that many pieces of a few megabytes take no more than they hold. What lies just before
/// can be read: MLX has the size of a buffer there. Null when there is no memory left.
Pages map_pages(std::size_t bytes, Backing backing);

/// Has untouched memory backed page by page where it holds huge ones, as it is touched: for what may never be used whole.
void use_small_pages(std::span<const std::byte> memory);
/// Undoes that; what is in memory already stays where it is until the system finds the time to move it.
void use_huge_pages(std::span<const std::byte> memory);

}  // namespace rlx
