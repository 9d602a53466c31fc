#pragma once
#include <cstdint>
#include <vector>

namespace rlx {

/// Pages of page_tokens tokens for many sequences, which may share those that they do not write, of layers that see `window` tokens (0:
/// all that came before): what no next token sees is given back.
class PagePool {
 public:
  /// The pages of a sequence, in the order of its tokens.
  struct List {
    std::int64_t first = 0;  // of its pages, the first that it still has
    std::vector<std::int32_t> pages = {};
    std::int64_t end() const { return first + static_cast<std::int64_t>(pages.size()); }
  };

  /// `most`: pages that a run reads of one sequence, at most.
  PagePool(std::int64_t window, std::int64_t most, std::int64_t pages);

  std::int64_t window() const { return window_; }
  std::int64_t free_pages() const { return static_cast<std::int64_t>(free_.size()); }
  /// Pages that a sequence will have to take, at most at a time, until it holds so many tokens.
  std::int64_t missing(const List& list, std::int64_t tokens) const;
  /// Takes the pages that so many tokens need. Throws Error where none is left.
  void take(List& list, std::int64_t tokens);
  /// Gives back what is behind the pages of so many tokens; all of it: the sequence begins anew.
  void keep(List& list, std::int64_t tokens);
  /// Gives back what the token behind so many does not see.
  void pass(List& list, std::int64_t tokens);
  /// Whether the sequence still has what the token behind so many sees.
  bool reaches(const List& list, std::int64_t tokens) const;
  /// Whether another sequence has the page of this token, too.
  bool is_shared(const List& list, std::int64_t token) const;
  /// The pages that so many tokens fill, for a sequence that begins with them.
  List share(const List& list, std::int64_t tokens);

 private:
  void give_back(std::int32_t page);
  std::int64_t first_seen(std::int64_t tokens) const;

  std::int64_t window_, most_;
  std::vector<std::int32_t> users_;  // of each page
  std::vector<std::int32_t> free_;   // those that were used last are taken first: the others' memory is not touched
};

/// Pages that hold so many tokens.
std::int64_t pages_for(std::int64_t tokens);

}  // namespace rlx
