#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "rlx/model.h"

namespace rlx::command {

/// How `rlx run` and `rlx chat` choose tokens.
struct SamplingChoices {
  /// An option of the command line that is a number of SamplingOptions.
  struct Number {
    CLI::Option* option;
    std::function<void(const SamplingOptions& from, SamplingOptions& to)> copy;
  };
  SamplingOptions options;  // what it holds before add_sampling are the initial values
  SamplingOptions initial;
  std::vector<Number> numbers;
  std::vector<std::string> logit_bias, dry_breakers;
  std::string grammar, json_schema;  // a file; a file or the schema itself
};

/// --temperature, --top-k and so on, --grammar and --json-schema.
void add_sampling(CLI::App& command, SamplingChoices& choices);

/// What can be read and checked before a model is open: the sampling options, without what names tokens, and the grammar. Throws Error
/// naming the option, or the file and its line.
GenerateOptions read_sampling(const SamplingChoices& choices);

/// Takes what the model's files recommend where no option was given.
void recommend(const SamplingChoices& choices, const Model& model, SamplingOptions& options);

/// Adds what names tokens of the model. Throws Error naming the option.
void name_tokens(const SamplingChoices& choices, const Model& model, SamplingOptions& options);

}  // namespace rlx::command
