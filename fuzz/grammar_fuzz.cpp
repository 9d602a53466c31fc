#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "parts.h"
#include "rlx/error.h"
#include "text/grammar/automaton.h"
#include "text/grammar/grammar.h"

/// The input is a grammar, or behind a first '{' a JSON schema, and behind a zero byte a text that is read by it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view source = rlx::fuzz::take_part(rest);
  try {
    const bool schema = source.starts_with('{');
    const auto gbnf = schema ? rlx::grammar::gbnf_of_json_schema(rlx::json::parse(source, "schema"), "schema") : std::string(source);
    rlx::grammar::Automaton automaton(std::make_shared<const rlx::grammar::Grammar>(rlx::grammar::parse_gbnf(gbnf, "grammar")));
    auto state = automaton.start();
    for (char c : rest.substr(0, 256)) state = automaton.step(state, static_cast<unsigned char>(c));
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
