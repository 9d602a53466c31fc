#include "options/cache_choice.h"

#include <fmt/ranges.h>

namespace rlx::command {

CLI::Option* add_cache_type(CLI::App& command, CacheType& type) {
  const auto words = enum_words(CacheType{});
  const std::vector<std::string> names(words.begin() + 1, words.end());  // the first is none of them
  const auto choose = [&type](const std::string& word) { type = cache_type_named(word).value_or(CacheType::usual); };
  return command
      .add_option_function<std::string>(
          "--cache-type", choose,
          fmt::format("What keys and values of tokens are kept as: {} (default: f16; bf16 with --precision bf16)", fmt::join(names, ", ")))
      ->type_name("TYPE")
      ->check(CLI::IsMember(names).description(""));
}

void add_exact(CLI::App& command, bool& exact) {
  command.add_flag("--exact", exact,
                   "A token has the same bits in a prompt of any length (of longrope: on either side of its short length), behind a kept "
                   "cache and alone; long prompts take longer");
}

}  // namespace rlx::command
