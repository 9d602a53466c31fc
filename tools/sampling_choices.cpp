#include "sampling_choices.h"

#include <charconv>
#include <limits>

#include "models/sampling/sampler.h"
#include "text_lines.h"

namespace rlx::command {
namespace {

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::pair<std::int32_t, float> parse_bias(const std::string& text) {
  const std::size_t colon = text.find(':');
  std::pair<std::int32_t, float> bias;
  if (colon == std::string::npos || !parse_number(std::string_view(text).substr(0, colon), bias.first) ||
      !parse_number(std::string_view(text).substr(colon + 1), bias.second))
    fail("--logit-bias: '{}' (allowed: the id of a token, a colon and a number, as 15043:-2.5 or 15043:-inf)", text);
  return bias;
}

bool is_json_object(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

}  // namespace

void add_sampling(CLI::App& command, SamplingChoices& choices) {
  const auto number = [&](const char* name, auto& value, const char* text) {
    command.add_option(name, value, text)->capture_default_str()->type_name("N")->group("Sampling");
  };
  SamplingOptions& o = choices.options;
  number("--temperature", o.temperature, "How freely tokens are drawn; 0: always the likeliest");
  number("--temperature-range", o.temperature_range, "The temperature moves by so much, by how unsure the model is");
  number("--temperature-exponent", o.temperature_exponent, "Of the entropy that moves it");
  number("--top-k", o.top_k, "Only the k likeliest tokens; 0: all");
  number("--typical-p", o.typical_p, "Only tokens about as surprising as expected, up to this probability together");
  number("--top-p", o.top_p, "Only the likeliest tokens up to this probability together");
  number("--min-p", o.min_p, "Only tokens at least this likely, relative to the likeliest");
  number("--xtc-probability", o.xtc_probability, "How often the likeliest tokens are left out, but for the last of them");
  number("--xtc-threshold", o.xtc_threshold, "Which those are: the ones at least this likely");
  number("--repeat-penalty", o.repetition_penalty, "What makes recent tokens less likely; 1: nothing");
  number("--frequency-penalty", o.frequency_penalty, "Taken from a recent token's logit for every time that it occurs");
  number("--presence-penalty", o.presence_penalty, "Taken from it once");
  number("--penalty-window", o.penalty_window, "How many tokens are recent; -1: all");
  number("--dry-multiplier", o.dry_multiplier, "Penalty of a token that makes a repetition longer; 0: none");
  number("--dry-base", o.dry_base, "It grows by this factor with each token of the repetition");
  number("--dry-allowed-length", o.dry_allowed_length, "Repetitions of fewer tokens are free");
  number("--dry-window", o.dry_window, "How many tokens back repetitions are looked for; -1: all");
  command.add_option("--dry-breaker", choices.dry_breakers, "Repetitions end at the last token of this text; may be given several times")
      ->type_name("TEXT")
      ->group("Sampling");
  number("--mirostat", o.mirostat, "1 or 2: that version of Mirostat in place of all that limits the tokens; 0: off");
  number("--mirostat-tau", o.mirostat_tau, "The surprise that it keeps to, in bits");
  number("--mirostat-eta", o.mirostat_eta, "How fast it corrects");
  command
      .add_option("--logit-bias", choices.logit_bias,
                  "Added to the logit of a token, by its id: 15043:-2.5, 15043:-inf; may be given several times")
      ->type_name("ID:N")
      ->group("Sampling");
  number("--seed", o.seed, "The same seed and options draw the same tokens");
  CLI::Option* grammar = command.add_option("--grammar", choices.grammar, "The answer is a text of this grammar, a file in GBNF");
  CLI::Option* schema =
      command.add_option("--json-schema", choices.json_schema, "The answer is JSON of this schema: a file, or the schema itself");
  grammar->type_name("FILE")->group("Sampling")->excludes(schema);
  schema->type_name("FILE|TEXT")->group("Sampling");
}

GenerateOptions read_sampling(const SamplingChoices& choices) {
  GenerateOptions options{.sampling = choices.options};
  for (const std::string& text : choices.logit_bias) options.sampling.logit_bias.push_back(parse_bias(text));
  sampling::check(options.sampling, std::numeric_limits<std::int32_t>::max());
  const std::string &file = choices.grammar, &schema = choices.json_schema;
  if (!file.empty()) options.grammar = parse_grammar(read_whole_text(file), file);
  else if (is_json_object(schema)) options.grammar = parse_json_schema(schema, "--json-schema");
  else if (!schema.empty()) options.grammar = parse_json_schema(read_whole_text(schema), schema);
  return options;
}

void name_tokens(const SamplingChoices& choices, const Model& model, SamplingOptions& options) {
  for (const std::string& text : choices.dry_breakers) {
    const auto ids = model.tokenize(text, false);
    if (ids.empty()) fail("--dry-breaker: '{}' has no tokens", text);
    options.dry_breakers.push_back(ids.back());
  }
}

}  // namespace rlx::command
