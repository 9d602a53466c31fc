#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "text/grammar/automaton.h"
#include "text/grammar/grammar.h"

namespace rlx::test {

inline std::shared_ptr<const grammar::Grammar> compiled(const std::string& text) {
  return std::make_shared<const grammar::Grammar>(grammar::parse_gbnf(text, "g"));
}

inline std::shared_ptr<const grammar::Grammar> of_schema(std::string_view schema) {
  return compiled(grammar::gbnf_of_json_schema(json::parse(schema, "schema"), "schema"));
}

inline bool matches(const std::shared_ptr<const grammar::Grammar>& grammar, std::string_view text) {
  grammar::Automaton automaton(grammar);
  grammar::Automaton::State state = automaton.start();
  for (char c : text) state = automaton.step(state, static_cast<unsigned char>(c));
  return automaton.accepts(state);
}

}  // namespace rlx::test
