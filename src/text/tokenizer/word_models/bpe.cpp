#include "text/tokenizer/word_models/bpe.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include <fmt/core.h>

#include "base/names.h"
#include "text/tokenizer/word_models/space_words.h"
#include "text/unicode/byte_chars.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

constexpr std::size_t short_word = 40;         // symbols up to which scanning for the lowest rank beats a queue
constexpr std::int32_t no_symbol = INT32_MIN;  // a code point that no token has a part in

std::size_t char_bytes(std::string_view text, std::size_t at) { return unicode::decode_valid(text.data() + at).bytes; }

}  // namespace

struct Bpe::Symbol {
  std::int32_t id;  // no_symbol, a token, or (negative) one of `parts_`
  std::uint32_t begin, end;
  MergeTable::Merge next = {};        // with the symbol to the right
  std::uint32_t left = 0, right = 0;  // neighbours in long words
};

Bpe::Bpe(Vocabulary vocabulary, Options options) : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
  if (options_.of_bytes) {
    for (std::size_t entry = 0; entry < vocabulary_.size(); ++entry) {
      // A name that is not written in byte_chars (an added token's, mostly) stands for no bytes.
      const auto bytes = byte_chars::bytes(vocabulary_.token_at(entry));
      if (bytes) bytes_.add(*bytes, vocabulary_.id_at(entry));
    }
    bytes_.finish();
  }
  byte_tokens_.fill(-1);
  for (unsigned byte = 0; byte < 256 && options_.byte_fallback; ++byte)
    byte_tokens_[byte] = vocabulary_.id(fmt::format("<0x{:02X}>", byte)).value_or(-1);
}

bool Bpe::add_merge(std::string_view left, std::string_view right, std::uint32_t rank) {
  if (right.empty()) return false;
  const auto left_id = vocabulary_.id(left);
  const auto right_id = vocabulary_.id(right);
  const bool continues = right.starts_with(options_.continuing_prefix);
  const std::string_view rest = continues ? right.substr(options_.continuing_prefix.size()) : right;
  const auto merged = vocabulary_.id(std::string(left).append(rest));
  if (!left_id || !right_id || !merged) return false;
  merges_.add(*left_id, *right_id, {rank, *merged});
  return true;
}

void Bpe::add_all_merges(std::span<const std::uint32_t> ranks) {
  const auto symbol = [this](std::string_view text) -> std::int32_t {
    if (const auto id = pieces().id(text)) return *id;
    if (options_.of_bytes || text.size() > 4 || char_bytes(text, 0) != text.size()) return no_symbol;
    if (const auto part = parts_.id(text)) return *part;
    const auto fresh = -2 - static_cast<std::int32_t>(parts_.size());
    parts_.add(text, fresh);
    return fresh;
  };
  for (std::size_t entry = 0; entry < pieces().size(); ++entry) {
    const std::string_view text = pieces().token_at(entry);
    const std::uint32_t rank = ranks[static_cast<std::size_t>(pieces().id_at(entry))];
    if (rank == never) continue;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if (!options_.of_bytes && !unicode::starts_code_point(text[cut])) continue;
      const std::int32_t left = symbol(text.substr(0, cut));
      const std::int32_t right = left == no_symbol ? no_symbol : symbol(text.substr(cut));
      if (right != no_symbol) merges_.add(left, right, {rank, pieces().id_at(entry)});
    }
  }
}

void Bpe::finish() {
  const Vocabulary& words = pieces();
  whole_ = std::make_unique<std::atomic<Whole>[]>(words.size());
  for (unsigned byte = 0; byte < 128; ++byte) {
    const char text = static_cast<char>(byte);
    ascii_[byte] = words.id({&text, 1}).value_or(parts_.id({&text, 1}).value_or(no_symbol));
  }
  find_cuts();
}

/// A merge across a place makes a token that spans it, so that a word can be cut where no token has these two code points, or bytes that
/// could be theirs, side by side.
void Bpe::find_cuts() {
  const bool all_bytes = std::ranges::all_of(byte_tokens_, [](std::int32_t id) { return id >= 0; });
  const bool joins = !all_bytes && (!options_.unknown || options_.fuse_unknown);  // across what is left out, or as one unknown token
  const bool affixes = !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
  if (options_.of_bytes || options_.whole_words_first || joins || affixes) return;
  can_cut_ = true;
  for (std::size_t pair = 0; pair < spans_.size(); ++pair) spans_[pair] = (pair & 0xC0) == 0x80;  // inside a code point
  for (std::size_t entry = 0; entry < vocabulary_.size(); ++entry) {
    const std::string_view text = vocabulary_.token_at(entry);
    for (std::size_t at = 1; at < text.size(); ++at) spans_[neighbours(text[at - 1], text[at])] = true;
  }
  cut_at_spaces_ = tokens_start_at_spaces(vocabulary_);
}

std::int32_t Bpe::symbol_id(std::string_view text) const {
  if (text.size() == 1 && static_cast<unsigned char>(text[0]) < 0x80) return ascii_[static_cast<unsigned char>(text[0])];
  if (const auto id = pieces().id(text)) return *id;
  return parts_.id(text).value_or(no_symbol);
}

void Bpe::tokenize(std::string_view word, std::vector<WordToken>& tokens) const {
  std::size_t begin = 0;
  for (std::size_t at = 1; at < word.size() && can_cut_; ++at) {
    if (spans_[neighbours(word[at - 1], word[at])] && !starts_space_word(word, at)) continue;
    tokenize_part(word.substr(begin, at - begin), begin, tokens);
    begin = at;
  }
  tokenize_part(word.substr(begin), begin, tokens);
}

bool Bpe::starts_space_word(std::string_view word, std::size_t at) const {
  return cut_at_spaces_ && word.substr(at).starts_with(space_marker) && !word.substr(0, at).ends_with(space_marker);
}

void Bpe::tokenize_part(std::string_view word, std::size_t begin, std::vector<WordToken>& tokens) const {
  const std::uint64_t hash = hash_bytes(word);
  const std::size_t entry = pieces().find(word, hash);
  if (entry != Vocabulary::none && (options_.whole_words_first || is_whole(entry, word))) {
    tokens.push_back({pieces().id_at(entry), begin, begin + word.size()});
    return;
  }
  WordCache& cache = WordCache::of_thread();
  if (cache.find(cache_key_, word, hash, begin, tokens)) return;
  const std::size_t before = tokens.size();
  std::vector<Symbol> symbols = first_symbols(word);
  merge(symbols);
  append(symbols, word, begin, tokens);
  cache.keep(cache_key_, word, hash, begin, std::span(tokens).subspan(before));
}

/// Tried once for each token: the answer is the same for every thread.
bool Bpe::is_whole(std::size_t entry, std::string_view word) const {
  Whole known = whole_[entry].load(std::memory_order_relaxed);
  if (known == Whole::not_tried) {
    std::vector<Symbol> symbols = first_symbols(word);
    merge(symbols);
    known = symbols.size() == 1 && symbols[0].id == pieces().id_at(entry) ? Whole::yes : Whole::no;
    whole_[entry].store(known, std::memory_order_relaxed);
  }
  return known == Whole::yes;
}

std::vector<Bpe::Symbol> Bpe::first_symbols(std::string_view word) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  const bool affixes = !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = options_.of_bytes ? at + 1 : at + char_bytes(word, at);
    const std::string_view piece = word.substr(at, end - at);
    const std::int32_t id = affixes ? affixed_id(piece, at == 0, end == word.size()) : symbol_id(piece);
    if (id != no_symbol || options_.unknown || has_byte_tokens(piece))
      symbols.push_back({id, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end)});
    at = end;
  }
  return symbols;
}

std::int32_t Bpe::affixed_id(std::string_view piece, bool first, bool last) const {
  std::string name = first ? "" : options_.continuing_prefix;
  name += piece;
  if (last) name += options_.end_suffix;
  return pieces().id(name).value_or(no_symbol);
}

void Bpe::rank(Symbol& left, const Symbol* right) const {
  left.next = right && left.id != no_symbol && right->id != no_symbol ? merges_.find(left.id, right->id) : MergeTable::Merge{};
}

void Bpe::merge(std::vector<Symbol>& symbols) const {
  for (std::size_t i = 0; i < symbols.size(); ++i) rank(symbols[i], i + 1 < symbols.size() ? &symbols[i + 1] : nullptr);
  if (symbols.size() > short_word) return merge_long(symbols);
  while (!symbols.empty()) {
    const auto best =
        std::min_element(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) { return a.next.rank < b.next.rank; });
    if (best->next.rank == UINT32_MAX) return;
    best->id = best->next.merged;
    best->end = (best + 1)->end;
    const auto after = symbols.erase(best + 1);
    rank(*best, after == symbols.end() ? nullptr : &*after);
    if (best != symbols.begin()) rank(*(best - 1), &*best);
  }
}

/// The same with a queue of pairs. Pairs that changed since they were queued are known by their rank.
void Bpe::merge_long(std::vector<Symbol>& symbols) const {
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // rank and left symbol
  std::vector<Pair> pairs;
  const auto count = static_cast<std::uint32_t>(symbols.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols[i].left = i - 1;
    symbols[i].right = i + 1;
    if (symbols[i].next.rank != UINT32_MAX) pairs.emplace_back(symbols[i].next.rank, i);
  }
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> queue(std::greater<>(), std::move(pairs));
  const auto rank_again = [&](std::uint32_t i) {
    rank(symbols[i], symbols[i].right < count ? &symbols[symbols[i].right] : nullptr);
    if (symbols[i].next.rank != UINT32_MAX) queue.emplace(symbols[i].next.rank, i);
  };
  while (!queue.empty()) {
    const auto [rank_now, i] = queue.top();
    queue.pop();
    Symbol& left = symbols[i];
    if (left.next.rank != rank_now) continue;
    Symbol& right = symbols[left.right];
    left.id = left.next.merged;
    left.end = right.end;
    left.right = right.right;
    right.begin = right.end;  // gone
    right.next = {};
    if (left.right < count) symbols[left.right].left = i;
    rank_again(i);
    if (left.left < count) rank_again(left.left);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.begin == symbol.end; });
}

bool Bpe::has_byte_tokens(std::string_view piece) const {
  return std::ranges::all_of(piece, [this](char byte) { return byte_token(byte) >= 0; });
}

void Bpe::append(std::span<const Symbol> symbols, std::string_view word, std::size_t begin, std::vector<WordToken>& tokens) const {
  bool after_unknown = false;
  for (const Symbol& symbol : symbols) {
    const std::string_view piece = word.substr(symbol.begin, symbol.end - symbol.begin);
    const std::size_t at = begin + symbol.begin;
    const bool joins = after_unknown && options_.fuse_unknown;
    after_unknown = symbol.id < 0 && !has_byte_tokens(piece);
    if (symbol.id >= 0) {
      tokens.push_back({symbol.id, at, at + piece.size()});
    } else if (!after_unknown) {
      for (std::size_t i = 0; i < piece.size(); ++i) tokens.push_back({byte_token(piece[i]), at + i, at + i + 1});
    } else if (joins) {
      tokens.back().end = at + piece.size();
    } else if (options_.unknown) {
      tokens.push_back({*options_.unknown, at, at + piece.size()});
    }
  }
}

namespace {

/// A merge is written "left right" or ["left", "right"].
std::pair<std::string, std::string> read_merge(const json::Value& value, const JsonField& merges, std::size_t index) {
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string())
    return {value[0].get<std::string>(), value[1].get<std::string>()};
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    const std::size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos)
      return {text.substr(0, space), text.substr(space + 1)};
  }
  merges.refuse("[{}]: expected two tokens, as \"a b\" or [\"a\", \"b\"], found {}", index, quote_name(value.dump()));
}

void read_merges(const JsonField& merges, Bpe& model) {
  if (!merges.value().is_array()) merges.refuse("expected an array, found a value of type {}", merges.value().type_name());
  std::uint32_t rank = 0;
  for (const json::Value& value : merges.value()) {
    const auto [left, right] = read_merge(value, merges, rank);
    if (!model.add_merge(left, right, rank))
      merges.refuse("[{}]: {}, {} or both together are not in the vocabulary", rank, quote_name(left), quote_name(right));
    ++rank;
  }
}

}  // namespace

std::unique_ptr<Bpe> Bpe::read(const JsonField& field, bool of_bytes) {
  Vocabulary vocabulary;
  vocabulary.read(field.at("vocab"));
  Options options;
  options.of_bytes = of_bytes;
  const auto flag = [&field](std::string_view name) {
    const auto given = field.find(name);
    return given && given->as_bool();
  };
  options.byte_fallback = flag("byte_fallback");
  options.fuse_unknown = flag("fuse_unk");
  options.whole_words_first = flag("ignore_merges");
  if (const auto dropout = field.find("dropout"); dropout && dropout->as_number() != 0)
    dropout->refuse("dropout is not supported: it makes tokens random");
  if (const auto prefix = field.find("continuing_subword_prefix")) options.continuing_prefix = prefix->as_string();
  if (const auto suffix = field.find("end_of_word_suffix")) options.end_suffix = suffix->as_string();
  if (options.byte_fallback && !(options.continuing_prefix + options.end_suffix).empty())
    field.at("byte_fallback").refuse("bytes instead of unknown code points are not supported where tokens have prefixes or suffixes");
  if (const auto unknown = field.find("unk_token")) {
    options.unknown = vocabulary.id(unknown->as_string());
    if (!options.unknown) unknown->refuse("{} is not in the vocabulary", quote_name(unknown->as_string()));
  }
  auto model = std::make_unique<Bpe>(std::move(vocabulary), std::move(options));
  read_merges(field.at("merges"), *model);
  model->finish();
  return model;
}

}  // namespace rlx
