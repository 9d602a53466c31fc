#pragma once
#include <memory>
#include <string_view>

namespace rlx {

namespace grammar {
struct Grammar;
}

/// The texts that an answer may be. Null: any.
using AnswerGrammar = std::shared_ptr<const grammar::Grammar>;

/// GBNF: rules `name ::= "text" | [a-z^\n] | . | other-rule | (group)`, each piece perhaps with * + ? {m} {m,} or {m,n}, and # comments.
/// `root` is the rule of the whole text. Throws Error "{name}: line 3, column 7: ..." for what is no such grammar, or too large.
AnswerGrammar parse_grammar(std::string_view gbnf, std::string_view name = "grammar");

/// The JSON texts that satisfy a schema, with members in the order of `properties`. Numbers with limits (minimum, maximum, multipleOf...)
/// have up to 18 digits before the point and no exponent; a `pattern` of ECMA-262 may not look around; items with uniqueItems must be
/// listed, up to ten (enum, const, boolean). Throws Error naming `name`, the place and the keyword for what is no schema or allows nothing,
/// and for keywords that restrict and are not supported, as a `oneOf` whose alternatives may both hold of one value.
AnswerGrammar parse_json_schema(std::string_view schema, std::string_view name = "schema");

}  // namespace rlx
