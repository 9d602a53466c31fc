#include "text/tokenizer/files/tekken.h"

#include <array>
#include <numeric>
#include <utility>

#include "base/base64.h"
#include "base/names.h"
#include "text/tokenizer/tokenizer_parts.h"
#include "text/tokenizer/word_models/bpe.h"
#include "text/unicode/byte_chars.h"

namespace rlx {
namespace {

constexpr std::uint64_t most_tokens = 1 << 24;

/// The special tokens of files that do not list them.
constexpr std::array<std::string_view, 15> first_special_tokens = {"<unk>",
                                                                   "<s>",
                                                                   "</s>",
                                                                   "[INST]",
                                                                   "[/INST]",
                                                                   "[AVAILABLE_TOOLS]",
                                                                   "[/AVAILABLE_TOOLS]",
                                                                   "[TOOL_RESULTS]",
                                                                   "[/TOOL_RESULTS]",
                                                                   "[TOOL_CALLS]",
                                                                   "[IMG]",
                                                                   "<pad>",
                                                                   "[IMG_BREAK]",
                                                                   "[IMG_END]",
                                                                   "[PREFIX]"};

struct TekkenSizes {
  std::size_t special = 0, words = 0;
};

TekkenSizes read_sizes(const JsonField& file) {
  const JsonField config = file.at("config");
  TekkenSizes sizes;
  sizes.special = config.at("default_num_special_tokens").as_integer(0, most_tokens);
  const std::uint64_t all = config.at("default_vocab_size").as_integer(sizes.special, most_tokens);
  sizes.words = all - sizes.special;
  const std::size_t listed = file.at("vocab").value().size();
  if (listed < sizes.words) file.at("vocab").refuse("{} tokens, but {} are asked for", listed, sizes.words);
  return sizes;
}

std::vector<std::string> special_names(const JsonField& file, std::size_t count) {
  std::vector<std::string> names(count);
  for (std::size_t i = 0; i < count; ++i)
    names[i] = i < first_special_tokens.size() ? std::string(first_special_tokens[i]) : fmt::format("<SPECIAL_{}>", i);
  const auto listed = file.find("special_tokens");
  if (!listed) return names;
  for (const JsonField& item : listed->items()) {
    const std::uint64_t rank = item.at("rank").as_integer(0, count - 1);
    names[rank] = item.at("token_str").as_string();
  }
  return names;
}

std::string written(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += byte_chars::character(static_cast<std::uint8_t>(byte));
  return text;
}

Vocabulary read_words(const JsonField& field, const TekkenSizes& sizes) {
  Vocabulary vocabulary;
  std::size_t rank = 0;
  for (const JsonField& item : field.items()) {
    if (rank == sizes.words) break;
    if (item.at("rank").as_integer(0, most_tokens) != rank)
      item.at("rank").refuse("expected {}: tokens are in the order of their ranks", rank);
    const std::string bytes = decode_base64(item.at("token_bytes").as_string(), item.place());
    if (bytes.empty()) item.refuse("the token is empty");
    if (!vocabulary.add(written(bytes), static_cast<std::int32_t>(sizes.special + rank)))
      item.refuse("the token {} is there twice", quote_name(bytes));
    ++rank;
  }
  vocabulary.finish();
  return vocabulary;
}

}  // namespace

bool is_tekken(const JsonField& file) { return file.value().is_object() && file.find("config") && !file.find("model"); }

Tokenizer read_tekken(const JsonField& file) {
  const TekkenSizes sizes = read_sizes(file);
  Bpe::Options options;
  options.of_bytes = true;
  options.whole_words_first = true;
  auto model = std::make_unique<Bpe>(read_words(file.at("vocab"), sizes), std::move(options));
  std::vector<std::uint32_t> ranks(sizes.special + sizes.words);
  std::iota(ranks.begin(), ranks.end(), 0);
  model->add_all_merges(ranks);
  model->finish();

  Tokenizer::Parts parts;
  const JsonField pattern = file.at("config").at("pattern");
  parts.pre_tokenizer = pattern_pre_tokenizer({pattern.as_string()}, pattern.place());
  parts.model = std::move(model);
  const std::vector<std::string> names = sizes.special > 0 ? special_names(file, sizes.special) : std::vector<std::string>();
  for (std::size_t id = 0; id < names.size(); ++id) parts.added_tokens.add_plain(names[id], static_cast<std::int32_t>(id), true, true);
  if (const AddedToken* begin = parts.added_tokens.find("<s>"))
    parts.post_processor = PostProcessor::around({{begin->id, begin->content}}, {});
  parts.decoder = byte_level_decoder();
  return Tokenizer(std::move(parts));
}

}  // namespace rlx
