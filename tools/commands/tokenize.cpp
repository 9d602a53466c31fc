#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/names.h"
#include "command.h"
#include "files/bounded_input.h"
#include "files/text_lines.h"
#include "formats/json/json.h"
#include "rlx/error.h"
#include "rlx/text_tokenizer.h"

namespace rlx::command {
namespace {

struct TokenizeOptions {
  std::string model, file;
  std::vector<std::string> texts;
  bool jsonl = false, json = false, decode = false, no_special = false, count = false;
};

std::string json_text(std::string_view text) { return json::quote(text, "standard input"); }

/// One line of --jsonl: the text with and without special tokens, and back.
std::string json_line(const TextTokenizer& tokenizer, const std::string& text) {
  const std::vector<std::int32_t> ids = tokenizer.encode(text, false);
  const std::vector<std::int32_t> special = tokenizer.encode(text, true);
  return fmt::format(R"({{"ids":[{}],"ids_special":[{}],"decoded":{},"decoded_skip":{}}})", fmt::join(ids, ","), fmt::join(special, ","),
                     json_text(tokenizer.decode(ids, false)), json_text(tokenizer.decode(ids, true)));
}

/// Answers each line as it comes, so that another program can talk to the command.
void answer_json_lines(const TextTokenizer& tokenizer) {
  std::size_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    const std::string where = fmt::format("standard input: line {}", number);
    const json::Value value = json::parse(line, where);
    if (!value.is_string()) fail("{}: expected a JSON string, found a value of type {}", where, value.type_name());
    fmt::print("{}\n", json_line(tokenizer, value.get<std::string>()));
    if (std::cin.rdbuf()->in_avail() == 0) std::fflush(stdout);
  }
}

/// The ids in a text of numbers between spaces or commas, with or without brackets. Throws Error for those that no token has.
std::vector<std::int32_t> read_ids(const TextTokenizer& tokenizer, const std::string& text) {
  std::vector<std::int32_t> ids;
  constexpr std::string_view separators = " ,\t\r\n[]";
  for (std::size_t at = text.find_first_not_of(separators); at != std::string::npos; at = text.find_first_not_of(separators, at)) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    std::int32_t id = 0;
    const auto [rest, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || rest != text.data() + end || id < 0)
      fail("'{}' is no token id (allowed: 0..{})", text.substr(at, end - at), INT32_MAX);
    tokenizer.token_of(id);
    ids.push_back(id);
    at = end;
  }
  return ids;
}

/// The length of the character that the text begins with; 0 where that is none.
std::size_t character_length(std::string_view text) {
  for (std::size_t length = 1; length <= std::min<std::size_t>(text.size(), 4); ++length)
    if (is_utf8(text.substr(0, length))) return length;
  return 0;
}

/// A token's text in quotes, as JSON has it; bytes that are no whole characters as <0x..>, special tokens as the vocabulary spells them.
std::string shown(const TextTokenizer& tokenizer, std::int32_t id) {
  const std::string bytes = tokenizer.bytes_of(id);
  if (bytes.empty()) return json_text(tokenizer.token_of(id));
  std::string out, text;
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::size_t length = character_length(rest);
    text += rest.substr(0, length);
    const bool ends = length == 0 || length == rest.size();
    if (ends && !text.empty()) out += json_text(std::exchange(text, {}));
    if (length == 0) out += fmt::format("<0x{:02X}>", static_cast<unsigned char>(rest[0]));
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

void print_text(const TokenizeOptions& options, const TextTokenizer& tokenizer, const std::string& text) {
  if (options.decode) {
    const std::string decoded = tokenizer.decode(read_ids(tokenizer, text), options.no_special);
    fmt::print("{}\n", options.json ? json_text(decoded) : decoded);
    return;
  }
  if (options.json) {
    fmt::print("{}\n", json_line(tokenizer, text));
    return;
  }
  const std::vector<std::int32_t> ids = tokenizer.encode(text, !options.no_special);
  if (!options.count)
    for (std::int32_t id : ids) fmt::print("{:>8}  {}\n", id, shown(tokenizer, id));
  fmt::print("{}{}\n", ids.size(), options.count ? "" : " tokens");
}

std::vector<std::string> texts_of(const TokenizeOptions& options) {
  if (!options.texts.empty()) {
    for (const std::string& text : options.texts) check_utf8(text, "the text");
    return options.texts;
  }
  return {read_whole_text(options.file.empty() ? "-" : options.file)};
}

void tokenize(const TokenizeOptions& options) {
  const TextTokenizer tokenizer = TextTokenizer::open(options.model);
  if (options.jsonl) return answer_json_lines(tokenizer);
  for (const std::string& text : texts_of(options)) print_text(options, tokenizer, text);
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Turn text into the token ids of a model, and ids into text");
  command->add_option("--model", options->model, "Folder of a model, or its tokenizer.json, tokenizer.model, tekken.json or .gguf file")
      ->required()
      ->type_name("PATH");
  CLI::Option* texts = command->add_option("text", options->texts, "Texts; without any, standard input is one text")->type_name("TEXT");
  // CLI11 takes [a, b] for a list where more words are allowed than expected, and a text may begin and end like that.
  texts->take_all()->expected(1 << 20, CLI::detail::expected_max_vector_size)->allow_extra_args(false);
  CLI::Option* file = command->add_option("--file", options->file, "Read one text from this file")->type_name("FILE")->excludes(texts);
  CLI::Option* decode = command->add_flag("--ids", options->decode, "The texts are ids, and their text is printed");
  CLI::Option* no_special = command->add_flag("--no-special", options->no_special,
                                              "Leave the special tokens out that the model puts around a text; with --ids all of them");
  CLI::Option* count = command->add_flag("--count", options->count, "Print only how many tokens there are")->excludes(decode);
  command
      ->add_flag("--json", options->json,
                 R"(Print one object a text: {"ids", "ids_special", "decoded", "decoded_skip"}; with --ids a string)")
      ->excludes(count);
  command
      ->add_flag("--jsonl", options->jsonl,
                 R"(One JSON string a line in, one object a line out: "ids" without and "ids_special" with special tokens, "decoded" and )"
                 R"("decoded_skip" the text of "ids" with and without special tokens)")
      ->excludes(texts, file, decode, no_special, count);
  command->footer("Example:\n  rlx tokenize --model model.gguf 'Hello, world'");
  command->callback([options] { tokenize(*options); });
}

}  // namespace rlx::command
