#include "options/generation_choices.h"

#include <algorithm>

#include "base/names.h"
#include "options/cache_choice.h"
#include "options/warnings.h"
#include "rlx/error.h"

namespace rlx::command {

void add_generation(CLI::App& command, GenerationChoices& choices) {
  const auto number = [&](const char* name, std::int64_t& value, const char* text, int least = 0) {
    CLI::Option* option = command.add_option(name, value, text);
    return option->type_name("N")->check(CLI::Range(least, 1 << 30).description(""));
  };
  command.add_option("model", choices.model, "GGUF file, or folder with config.json, tokenizer and safetensors files")
      ->required()
      ->type_name("PATH");
  add_adapters(command, choices.adapters);
  number("-n,--tokens", choices.tokens, "Most tokens of an answer; 0: until the context is full")->capture_default_str();
  number("--context", choices.context, "Tokens that fit, of everything together; 0: as many as the model allows, at most 8192");
  add_cache_type(command, choices.cache);
  add_exact(command, choices.exact);
  CLI::Option* shift = command.add_flag("--context-shift", choices.context_shift,
                                        "Where the context is full, forget the older half and go on; with -n 0 an answer may have no end");
  number("--keep", choices.keep, "Never forget the first N tokens")->needs(shift);
  CLI::Option* lookup =
      command.add_flag("--lookup", choices.lookup, "Guess tokens from what followed the same ones before: the same answer, sooner");
  CLI::Option* draft = command.add_option("--draft", choices.draft,
                                          "Guess tokens with this smaller model, which has the same tokens: the same answer, sooner");
  draft->type_name("PATH")->excludes(lookup);
  CLI::Option* guesses = number("--guesses", choices.guesses, "Tokens that --lookup or --draft guesses at a time", 1);
  guesses->capture_default_str();
  command.parse_complete_callback([=] {
    if (guesses->count() > 0 && lookup->count() + draft->count() == 0) throw CLI::RequiresError("--guesses", "--lookup or --draft");
  });
  add_sampling(command, choices.sampling);
}

namespace {

/// Guesses of a model with other tokens would all be wrong, and nobody would see why the answer is slow.
void check_same_tokens(const Model& model, const Model& draft, const std::string& name) {
  constexpr std::int64_t enough = 4096;  // to tell vocabularies apart; the last ones of a family's models may differ
  const std::int64_t shared = std::min({enough, model.vocab_size(), draft.vocab_size()});
  for (std::int32_t id = 0; id < shared; ++id)
    if (model.bytes_of(id) != draft.bytes_of(id))
      fail("--draft {}: its token {} is {}, the model's is {} (needed: the same tokens)", name, id, quote_name(draft.bytes_of(id)),
           quote_name(model.bytes_of(id)));
}

}  // namespace

AnsweringModel open_model(const GenerationChoices& choices, const Session& session, std::vector<LayersOn> layers_on) {
  GenerateOptions options = read_sampling(choices.sampling);
  options.max_tokens = choices.tokens;
  options.context_shift = choices.context_shift, options.keep = choices.keep;
  Model model = Model::open(choices.model, session,
                            {.context = choices.context,
                             .adapters = choices.adapters,
                             .cache = choices.cache,
                             .exact = choices.exact,
                             .layers_on = std::move(layers_on)});
  warn_about_context(model.context(), model.trained_context());
  if (choices.recommended) recommend(choices.sampling, model, options.sampling);
  name_tokens(choices.sampling, model, options.sampling);
  if (choices.lookup || !choices.draft.empty()) options.guesses = choices.guesses;
  if (!choices.draft.empty()) {
    options.draft = std::make_shared<Model>(Model::open(choices.draft, session, {.context = model.context(), .cache = choices.cache}));
    check_same_tokens(model, *options.draft, choices.draft);
  }
  return {std::move(model), std::move(options)};
}

}  // namespace rlx::command
