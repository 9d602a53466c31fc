#include "rlx/grammar.h"
#include "text/grammar/grammar.h"

namespace rlx {

AnswerGrammar parse_grammar(std::string_view gbnf, std::string_view name) {
  return std::make_shared<const grammar::Grammar>(grammar::parse_gbnf(gbnf, name));
}

AnswerGrammar parse_json_schema(std::string_view schema, std::string_view name) {
  return parse_grammar(grammar::gbnf_of_json_schema(json::parse(schema, name), name), name);
}

}  // namespace rlx
