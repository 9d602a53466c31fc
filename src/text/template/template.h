#pragma once
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "formats/json/json.h"

namespace rlx::jinja {

struct Syntax;

/// What a rendering may use. A template that wants more is an Error.
struct RenderLimits {
  std::int64_t steps = 20'000'000;  ///< nodes of the tree that are evaluated, and work on long values
  int depth = 400;                  ///< nested expressions, blocks and calls
  std::size_t output_bytes = std::size_t{1} << 26;
  std::size_t memory_bytes = std::size_t{1} << 29;  ///< of all strings and lists that are ever made
};

struct RenderOptions {
  RenderLimits limits;
  std::tm now{};  ///< what strftime_now tells
};

/// A template in Jinja's language, as Hugging Face's chat templates use it: Jinja 3.1 in the immutable sandbox, with trim_blocks,
/// lstrip_blocks, loop controls and `generation` blocks, Python's number formats, and `tojson`, `raise_exception` and `strftime_now`
/// as transformers defines them. Without autoescape, includes and inheritance.
class Template {
 public:
  /// `name` stands for the template in messages. Throws Error "{name}: line 3: ..." for what is not Jinja.
  static Template parse(std::string_view source, std::string name);

  /// The text for the members of the object `variables`. Throws Error with the line for what fails, or exceeds the limits. May be called
  /// from several threads at once.
  std::string render(const json::Value& variables, const RenderOptions& options = {}) const;

  const std::string& name() const;

 private:
  explicit Template(std::shared_ptr<const Syntax> syntax) : syntax_(std::move(syntax)) {}

  std::shared_ptr<const Syntax> syntax_;
};

}  // namespace rlx::jinja
