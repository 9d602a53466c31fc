#include "options/sampling_choices.h"

#include <charconv>
#include <limits>
#include <type_traits>

#include "base/names.h"
#include "files/text_lines.h"
#include "models/run/sampling/sampler.h"

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

/// CLI11 takes an integer that does not fit for the nearest one that does, and -1 for the largest unsigned number.
template <class Number>
std::string check_whole(const std::string& text) {
  using Limits = std::numeric_limits<Number>;
  Number value{};
  return parse_number(text, value) ? "" : fmt::format("{} (allowed: whole numbers, {}..{})", text, Limits::min(), Limits::max());
}

}  // namespace

void add_sampling(CLI::App& command, SamplingChoices& choices) {
  choices.initial = choices.options;
  const auto number = [&](const char* name, auto member, const char* text) {
    CLI::Option* option = command.add_option(name, choices.options.*member, text);
    option->capture_default_str()->type_name("N")->group("Sampling");
    using Number = std::remove_reference_t<decltype(choices.options.*member)>;
    if constexpr (std::is_integral_v<Number>) option->check(CLI::Validator(check_whole<Number>, ""));
    choices.numbers.push_back({option, [member](const SamplingOptions& from, SamplingOptions& to) { to.*member = from.*member; }});
  };
  using O = SamplingOptions;
  number("--temperature", &O::temperature, "How freely tokens are drawn; 0: always the likeliest");
  number("--temperature-range", &O::temperature_range, "The temperature moves by so much, by how unsure the model is");
  number("--temperature-exponent", &O::temperature_exponent, "Of the entropy that moves it");
  number("--top-k", &O::top_k, "Only the k likeliest tokens; 0: all");
  number("--typical-p", &O::typical_p, "Only tokens about as surprising as expected, up to this probability together");
  number("--top-p", &O::top_p, "Only the likeliest tokens up to this probability together");
  number("--min-p", &O::min_p, "Only tokens at least this likely, relative to the likeliest");
  number("--xtc-probability", &O::xtc_probability, "How often the likeliest tokens are left out, but for the last of them");
  number("--xtc-threshold", &O::xtc_threshold, "Which those are: the ones at least this likely");
  number("--repeat-penalty", &O::repetition_penalty, "What makes recent tokens less likely; 1: nothing");
  number("--frequency-penalty", &O::frequency_penalty, "Taken from a recent token's logit for every time that it occurs");
  number("--presence-penalty", &O::presence_penalty, "Taken from it once");
  number("--penalty-window", &O::penalty_window, "How many tokens are recent; -1: all");
  number("--dry-multiplier", &O::dry_multiplier, "Penalty of a token that makes a repetition longer; 0: none");
  number("--dry-base", &O::dry_base, "It grows by this factor with each token of the repetition");
  number("--dry-allowed-length", &O::dry_allowed_length, "Repetitions of fewer tokens are free");
  number("--dry-window", &O::dry_window, "How many tokens back repetitions are looked for; -1: all");
  command.add_option("--dry-breaker", choices.dry_breakers, "Repetitions end at the last token of this text; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->group("Sampling");
  number("--mirostat", &O::mirostat, "1 or 2: that version of Mirostat in place of all that limits the tokens; 0: off");
  number("--mirostat-tau", &O::mirostat_tau, "The surprise that it keeps to, in bits");
  number("--mirostat-eta", &O::mirostat_eta, "How fast it corrects");
  command
      .add_option("--logit-bias", choices.logit_bias,
                  "Added to the logit of a token, by its id: 15043:-2.5, 15043:-inf; may be given several times")
      ->type_name("ID:N")
      ->allow_extra_args(false)
      ->group("Sampling");
  number("--seed", &O::seed, "The same seed and options draw the same tokens, at one level of the CPU (RLX_CPU)");
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

void recommend(const SamplingChoices& choices, const Model& model, SamplingOptions& options) {
  SamplingOptions chosen = model.recommended_sampling(choices.initial);
  for (const auto& [option, copy] : choices.numbers)
    if (option->count() == 0) copy(chosen, options);
}

void name_tokens(const SamplingChoices& choices, const Model& model, SamplingOptions& options) {
  for (const std::string& text : choices.dry_breakers) {
    check_utf8(text, "--dry-breaker");
    const auto ids = model.tokenize(text, false);
    if (ids.empty()) fail("--dry-breaker: '{}' has no tokens", text);
    options.dry_breakers.push_back(ids.back());
  }
}

}  // namespace rlx::command
