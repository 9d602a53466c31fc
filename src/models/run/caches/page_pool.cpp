#include "models/run/caches/page_pool.h"

#include <algorithm>

#include "models/layers/decoder.h"
#include "rlx/error.h"

namespace rlx {

std::int64_t pages_for(std::int64_t tokens) { return (tokens + page_tokens - 1) / page_tokens; }

PagePool::PagePool(std::int64_t window, std::int64_t most, std::int64_t pages)
    : window_(window), most_(most), users_(static_cast<std::size_t>(pages), 0) {
  for (auto page = static_cast<std::int32_t>(pages); page-- > 0;) free_.push_back(page);
}

std::int64_t PagePool::missing(const List& list, std::int64_t tokens) const {
  return std::max<std::int64_t>(std::min(pages_for(tokens) - list.first, most_) - static_cast<std::int64_t>(list.pages.size()), 0);
}

void PagePool::take(List& list, std::int64_t tokens) {
  while (list.end() < pages_for(tokens)) {
    if (free_.empty()) fail("the caches of the batch are full: a page of {} tokens is needed, 0 are free", page_tokens);
    list.pages.push_back(free_.back());
    free_.pop_back();
    ++users_[static_cast<std::size_t>(list.pages.back())];
  }
}

void PagePool::give_back(std::int32_t page) {
  if (--users_[static_cast<std::size_t>(page)] == 0) free_.push_back(page);
}

void PagePool::keep(List& list, std::int64_t tokens) {
  for (; !list.pages.empty() && list.end() > pages_for(tokens); list.pages.pop_back()) give_back(list.pages.back());
  if (tokens == 0) list.first = 0;
}

/// The first page of what the token behind so many sees.
std::int64_t PagePool::first_seen(std::int64_t tokens) const {
  return window_ == 0 ? 0 : std::max<std::int64_t>(tokens - window_ + 1, 0) / page_tokens;
}

void PagePool::pass(List& list, std::int64_t tokens) {
  const auto gone = std::clamp<std::int64_t>(first_seen(tokens) - list.first, 0, static_cast<std::int64_t>(list.pages.size()));
  for (std::int64_t page = 0; page < gone; ++page) give_back(list.pages[static_cast<std::size_t>(page)]);
  list.pages.erase(list.pages.begin(), list.pages.begin() + gone);
  list.first += gone;
}

bool PagePool::reaches(const List& list, std::int64_t tokens) const { return list.first <= first_seen(tokens); }

bool PagePool::is_shared(const List& list, std::int64_t token) const {
  const std::int64_t page = token / page_tokens;
  return page >= list.first && page < list.end() &&
         users_[static_cast<std::size_t>(list.pages[static_cast<std::size_t>(page - list.first)])] > 1;
}

PagePool::List PagePool::share(const List& list, std::int64_t tokens) {
  List mine = list;
  mine.pages.resize(static_cast<std::size_t>(std::max<std::int64_t>(tokens / page_tokens - list.first, 0)));
  for (const std::int32_t page : mine.pages) ++users_[static_cast<std::size_t>(page)];
  return mine;
}

}  // namespace rlx
