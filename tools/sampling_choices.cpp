#include "sampling_choices.h"

#include <memory>

namespace rlx::command {

void add_sampling(CLI::App& command, sampling::Options& choices) {
  const auto number = [&](const char* name, auto& value, const char* text) {
    command.add_option(name, value, text)->capture_default_str()->type_name("N")->group("Sampling");
  };
  number("--temperature", choices.temperature, "How freely tokens are drawn; 0: always the likeliest");
  number("--top-k", choices.top_k, "Only the k likeliest tokens; 0: all");
  number("--top-p", choices.top_p, "Only the likeliest tokens up to this probability together");
  number("--min-p", choices.min_p, "Only tokens at least this likely, relative to the likeliest");
  number("--repeat-penalty", choices.repetition_penalty, "What makes recent tokens less likely; 1: nothing");
  number("--seed", choices.seed, "The same seed and options draw the same tokens");
}

std::function<std::int32_t(std::span<const float>, std::span<const std::int32_t>)> chooser(const sampling::Options& choices,
                                                                                           std::int64_t vocabulary,
                                                                                           std::span<const std::int32_t> prompt) {
  const auto sampler = std::make_shared<sampling::Sampler>(choices, vocabulary);
  for (std::int32_t id : prompt) sampler->accept(id);
  return [sampler](std::span<const float> logits, std::span<const std::int32_t>) {
    const std::int32_t id = sampler->sample(logits).id;
    sampler->accept(id);
    return id;
  };
}

}  // namespace rlx::command
