#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "options/adapter_choices.h"
#include "options/sampling_choices.h"
#include "rlx/model.h"

namespace rlx::command {

/// How `rlx run` and `rlx chat` make an answer.
struct GenerationChoices {
  std::string model, draft;  // paths; draft: empty for none
  std::int64_t tokens = 0, context = 0, keep = 0, guesses = 4;
  bool context_shift = false, lookup = false;
  std::vector<Adapter> adapters;
  CacheType cache = CacheType::usual;
  bool exact = false;
  bool recommended = false;  // where no option says otherwise, tokens are drawn as the model's files recommend
  SamplingChoices sampling;
};

/// The model, --lora, --tokens, --context, --context-shift, --lookup and so on, and the options of add_sampling. What `choices` holds are
/// the initial values.
void add_generation(CLI::App& command, GenerationChoices& choices);

/// A model with what its answers are made by.
struct AnsweringModel {
  Model model;
  GenerateOptions options;
};

/// Opens the model, and the draft model where there is one. Throws Error, before that for what can be checked without them.
AnsweringModel open_model(const GenerationChoices& choices, const Session& session, std::vector<LayersOn> layers_on = {});

}  // namespace rlx::command
