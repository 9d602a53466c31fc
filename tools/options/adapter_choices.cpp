#include "options/adapter_choices.h"

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace rlx::command {
namespace {

/// PATH, or PATH:SCALE where a number stands behind the last colon and the whole is no file.
Adapter adapter_of(const std::string& text) {
  std::error_code error;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || std::filesystem::exists(text, error)) return {.path = text};
  const char *first = text.data() + colon + 1, *last = text.data() + text.size();
  Adapter adapter{.path = text.substr(0, colon)};
  const auto [end, status] = std::from_chars(first, last, adapter.scale);
  if (status != std::errc() || end != last) return {.path = text};
  return adapter;
}

}  // namespace

CLI::Option* add_adapters(CLI::App& command, std::vector<Adapter>& adapters) {
  const auto add = [&adapters](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) adapters.push_back(adapter_of(text));
  };
  return command
      .add_option_function<std::vector<std::string>>(
          "--lora", add, "A LoRA adapter, a folder of PEFT's or a GGUF file, and what it is multiplied by; may be given several times")
      ->type_name("PATH[:SCALE]")
      ->allow_extra_args(false);
}

}  // namespace rlx::command
