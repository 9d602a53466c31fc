#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "models/grammar/automaton.h"
#include "models/grammar/grammar.h"
#include "rlx/error.h"

/// The input is a grammar, or behind a first '{' a JSON schema, and behind a zero byte a text that is read by it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size), source = input.substr(0, input.find('\0'));
  try {
    const bool schema = source.starts_with('{');
    const auto gbnf = schema ? rlx::grammar::gbnf_of_json_schema(rlx::json::parse(source, "schema"), "schema") : std::string(source);
    rlx::grammar::Automaton automaton(std::make_shared<const rlx::grammar::Grammar>(rlx::grammar::parse_gbnf(gbnf, "grammar")));
    auto state = automaton.start();
    for (char c : input.substr(std::min(source.size() + 1, size)).substr(0, 256))
      state = automaton.step(state, static_cast<unsigned char>(c));
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
