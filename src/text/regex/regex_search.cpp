#include <bit>
#include <utility>

#include "rlx/error.h"
#include "text/regex/regex.h"
#include "text/regex/regex_tree.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

constexpr std::size_t max_steps_back = 10'000'000;

std::size_t before(std::string_view text, std::size_t at) {
  do --at;
  while (!unicode::starts_code_point(text[at]));
  return at;
}

}  // namespace

std::optional<RegexSearch::Match> RegexSearch::next() {
  steps_ = 0;
  while (from_ <= text_.size()) {
    const bool possible = from_ < text_.size() ? regex_.starts_[static_cast<unsigned char>(text_[from_])] : regex_.starts_empty_;
    const std::optional<std::size_t> end = possible ? match(0, from_) : std::nullopt;
    const std::size_t begin = from_;
    const std::size_t following = begin < text_.size() ? begin + unicode::decode_valid(text_.data() + begin).bytes : begin + 1;
    from_ = end && *end > begin ? *end : following;
    if (end) return Match{begin, *end};
  }
  return std::nullopt;
}

std::optional<std::size_t> RegexSearch::match(std::uint32_t pc, std::size_t at) {
  const std::size_t base = back_.size();
  while (regex_.program_[pc].op != Regex::Op::match) {
    if (!step(pc, at) && !go_back(base, pc, at)) return std::nullopt;
  }
  back_.resize(base);
  return at;
}

/// Carries out one instruction. False if it does not match.
bool RegexSearch::step(std::uint32_t& pc, std::size_t& at) {
  const Regex::Instruction& now = regex_.program_[pc];
  switch (now.op) {
    case Regex::Op::one: {
      if (at == text_.size()) return false;
      const unicode::Decoded next = unicode::decode_valid(text_.data() + at);
      if (!regex_.tables_[now.first].contains(next.value)) return false;
      at += next.bytes;
      ++pc;
      return true;
    }
    case Regex::Op::run: return step_run(pc, at);
    case Regex::Op::choose: {
      const Regex::Choice& choice = regex_.choices_[now.first];
      const std::uint32_t open = at < text_.size() ? choice.by_byte[static_cast<unsigned char>(text_[at])] : choice.at_end;
      if (open == 0) return false;
      if ((open & (open - 1)) != 0) back_.push_back({pc, static_cast<std::uint32_t>(at), open & (open - 1)});
      pc = choice.targets[static_cast<std::size_t>(std::countr_zero(open))];
      return true;
    }
    case Regex::Op::jump: pc = now.first; return true;
    case Regex::Op::atomic: {
      const auto end = match(pc + 1, at);
      if (!end) return false;
      at = *end;
      pc = now.first;
      return true;
    }
    case Regex::Op::look: return step_look(pc, at);
    case Regex::Op::ends_here: ++pc; return at == behind_end_;
    default: ++pc; return holds(now.first, at);
  }
}

bool RegexSearch::step_run(std::uint32_t& pc, std::size_t& at) {
  const Regex::Instruction& now = regex_.program_[pc];
  const CharTable& table = regex_.tables_[now.first];
  std::size_t low = at;  // as far as it may go back
  std::size_t place = at;
  for (std::uint32_t count = 0; count < now.max && place < text_.size();) {
    const unicode::Decoded next = unicode::decode_valid(text_.data() + place);
    if (!table.contains(next.value)) break;
    place += next.bytes;
    if (++count == now.min) low = place;
  }
  if (now.min > 0 && low == at) return false;
  if (!now.keeps && place > low) back_.push_back({pc, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(low)});
  at = place;
  ++pc;
  return true;
}

bool RegexSearch::step_look(std::uint32_t& pc, std::size_t& at) {
  const Regex::Instruction& now = regex_.program_[pc];
  const bool found = now.behind ? looks_behind(pc + 1, at, now.min, now.max) : match(pc + 1, at).has_value();
  pc = now.first;
  return found != now.keeps;
}

bool RegexSearch::looks_behind(std::uint32_t pc, std::size_t at, std::uint32_t min, std::uint32_t max) {
  const std::size_t outer = std::exchange(behind_end_, at);
  std::size_t start = at;
  bool found = false;
  for (std::uint32_t width = 0; width <= max && !found; ++width) {
    if (width >= min) found = match(pc, start).has_value();
    if (start == 0) break;
    start = before(text_, start);
  }
  behind_end_ = outer;
  return found;
}

/// Takes up the latest place where something else can be tried. False if there is none.
bool RegexSearch::go_back(std::size_t base, std::uint32_t& pc, std::size_t& at) {
  if (back_.size() == base) return false;
  if (++steps_ > max_steps_back) fail("tokenizer: the pattern takes more than {} steps on this text", max_steps_back);
  Back& top = back_.back();
  const Regex::Instruction& from = regex_.program_[top.pc];
  if (from.op == Regex::Op::run) {
    at = before(text_, top.place);
    pc = top.pc + 1;
    if (at > top.rest) top.place = static_cast<std::uint32_t>(at);
    else back_.pop_back();
    return true;
  }
  at = top.place;
  pc = regex_.choices_[from.first].targets[static_cast<std::size_t>(std::countr_zero(top.rest))];
  top.rest &= top.rest - 1;
  if (top.rest == 0) back_.pop_back();
  return true;
}

bool RegexSearch::holds(std::uint32_t place, std::size_t at) const {
  using Place = RegexNode::Place;
  const bool first = at == 0;
  const bool last = at == text_.size();
  switch (static_cast<Place>(place)) {
    case Place::text_begin: return first;
    case Place::text_end: return last;
    case Place::last_line_end: return last || (at + 1 == text_.size() && text_[at] == '\n');
    case Place::line_begin: return first || (text_[at - 1] == '\n' && !last);
    case Place::line_end: return last || text_[at] == '\n';
    default: break;
  }
  static const CharTable words(CharSet::words());
  const auto word_at = [this](std::size_t i) { return words.contains(unicode::decode_valid(text_.data() + i).value); };
  const bool boundary = (!first && word_at(before(text_, at))) != (!last && word_at(at));
  return boundary == (static_cast<Place>(place) == Place::word_boundary);
}

}  // namespace rlx
