#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/json.h"
#include "models/template/template.h"
#include "rlx/error.h"

/// The input is a template and, behind a zero byte, its variables as JSON.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  rlx::jinja::RenderOptions options;
  options.limits = {.steps = 100'000, .depth = 200, .output_bytes = 1 << 20, .memory_bytes = 1 << 22};
  try {
    rlx::json::Value variables = rlx::json::Value::object();
    if (end != std::string_view::npos) variables = rlx::json::parse(input.substr(end + 1), "variables");
    rlx::jinja::Template::parse(input.substr(0, end), "fuzz").render(variables, options);
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
