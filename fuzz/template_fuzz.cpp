#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/json/json.h"
#include "models/config/model_chat_template.h"
#include "parts.h"
#include "rlx/error.h"

/// The input is a template and, behind a zero byte, its variables, or a conversation, as JSON.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view source = rlx::fuzz::take_part(rest);
  rlx::jinja::RenderOptions options;
  options.limits = {.steps = 100'000, .depth = 200, .output_bytes = 1 << 20, .memory_bytes = 1 << 22};
  try {
    rlx::json::Value variables = rlx::json::Value::object();
    if (!rest.empty()) variables = rlx::json::parse(rest, "variables");
    const auto parsed = rlx::jinja::Template::parse(source, "fuzz");
    if (variables.is_array() || variables.contains("messages"))
      rlx::ChatTemplate(parsed, rlx::json::Value::object()).render(rlx::Chat::from_json(variables, "chat.json"), options);
    else parsed.render(variables, options);
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
