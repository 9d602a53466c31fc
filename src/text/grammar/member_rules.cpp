#include "text/grammar/member_rules.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text/grammar/json_rules.h"
#include "text/unicode/unicode.h"

namespace rlx::grammar {
namespace {

class MemberWriter {
 public:
  MemberWriter(const std::vector<Member>& members, const AddRule& add_rule)
      : members_(members), add_rule_(add_rule), behind_(members.size()) {}

  std::string write(const std::optional<std::string>& others) {
    if (others) {
      const std::string other = add_rule_(*others);
      others_ = add_rule_(fmt::format(R"({0} (ws "," ws {0})*)", other));
    }
    std::size_t end = members_.size();  // behind the next member that must be there
    bool may_end = true;
    for (std::size_t i = members_.size(); i-- > 0;) {
      behind_[i] = add_rule_(fmt::format(R"(ws ":" ws {} {})", members_[i].value, after(i + 1, end, may_end)));
      if (members_[i].required) end = i + 1, may_end = false;
    }
    const std::string first = any_of(0, end, may_end);
    return first + (may_end && !first.empty() ? "?" : "");
  }

 private:
  std::string after(std::size_t begin, std::size_t end, bool may_end) {
    const std::string next = any_of(begin, end, may_end);
    return next.empty() ? "" : add_rule_(fmt::format(R"((ws "," ws {}){})", next, may_end ? "?" : ""));
  }

  /// One of the members begin..end and what follows it; or else others, where the object may end.
  std::string any_of(std::size_t begin, std::size_t end, bool may_end) {
    std::vector<std::string> alternatives;
    cover(0, std::bit_ceil(members_.size()), begin, end, alternatives);
    if (may_end && !others_.empty()) alternatives.push_back(others_);
    return alternatives.empty() ? "" : fmt::format("({})", fmt::join(alternatives, " | "));
  }

  /// Ranges that many choices share: those of a binary tree, so that there are few for each and few in all.
  void cover(std::size_t low, std::size_t high, std::size_t begin, std::size_t end, std::vector<std::string>& alternatives) {
    if (high <= begin || end <= low) return;
    if (begin <= low && high <= end) return alternatives.push_back(range(low, high));
    const std::size_t middle = low + (high - low) / 2;
    cover(low, middle, begin, end, alternatives);
    cover(middle, high, begin, end, alternatives);
  }

  std::string range(std::size_t low, std::size_t high) {
    std::string& rule = ranges_[{low, high}];
    if (!rule.empty()) return rule;
    std::vector<std::size_t> sorted;
    for (std::size_t i = low; i < high; ++i) sorted.push_back(i);
    std::ranges::sort(sorted, {}, [&](std::size_t i) -> const std::string& { return members_[i].name; });
    return rule = one_of(sorted, 0);
  }

  /// Names in alphabetical order, of which the first `skip` bytes are the same and written.
  std::string one_of(std::span<const std::size_t> sorted, std::size_t skip) {
    std::vector<std::string> alternatives;
    while (!sorted.empty()) {
      const std::string_view first = name(sorted.front());
      std::size_t count = 1, length = unicode::decode_valid(first.data() + skip).bytes;
      while (count < sorted.size() && unicode::common_prefix(first, name(sorted[count])) >= skip + length) ++count;
      if (count == 1) {
        alternatives.push_back(fmt::format("{} {}", literal(first.substr(skip)), behind_[sorted.front()]));
      } else {
        const std::size_t same = unicode::common_prefix(first, name(sorted[count - 1]));
        alternatives.push_back(fmt::format("{} {}", literal(first.substr(skip, same - skip)), one_of(sorted.first(count), same)));
      }
      sorted = sorted.subspan(count);
    }
    return add_rule_(fmt::format("{}", fmt::join(alternatives, " | ")));
  }

  std::string_view name(std::size_t i) const { return members_[i].name; }

  const std::vector<Member>& members_;
  const AddRule& add_rule_;
  std::string others_;
  std::vector<std::string> behind_;  // the name of each member
  std::map<std::pair<std::size_t, std::size_t>, std::string> ranges_;
};

}  // namespace

std::string member_rules(const std::vector<Member>& members, const std::optional<std::string>& others, const AddRule& add_rule) {
  return MemberWriter(members, add_rule).write(others);
}

}  // namespace rlx::grammar
