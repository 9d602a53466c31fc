#pragma once
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/json/json.h"

namespace rlx::grammar {

using ByteSet = std::bitset<256>;

/// A context-free grammar over the bytes of UTF-8, as a program. An alternative is a run of elements that ends with `end`.
struct Element {
  enum class Kind : std::uint8_t { bytes, rule, end };
  Kind kind = Kind::end;
  std::uint32_t index = 0;  // of `sets` or `rules`
};

struct Rule {
  std::string name;
  std::vector<std::uint32_t> alternatives;  // where they begin in `elements`
};

struct Grammar {
  std::vector<Element> elements;
  std::vector<ByteSet> sets;
  std::vector<Rule> rules;
  std::uint32_t root = 0;
};

/// GBNF: rules `name ::= "text" | [a-z^\n] | . | other-rule | (group)`, each piece perhaps with * + ? {m} {m,} or {m,n}, and # comments.
/// The rule `root` is what a text must match. Throws Error "{what}: line 3, column 7: ..." for what is no GBNF, unknown and repeated rules,
/// left recursion, a root that no text satisfies, and grammars beyond the limits (65536 rules, a million elements, 10000 repetitions, 100
/// nested groups).
Grammar parse_gbnf(std::string_view text, std::string_view what);

/// GBNF for the JSON texts that satisfy a schema, with members in the order of `properties`. Members that the schema does not list are
/// allowed only where it says so by additionalProperties, or lists none. Throws Error naming `what`, the place and the keyword, for
/// keywords that restrict and are not supported, and for wrong ones.
std::string gbnf_of_json_schema(const json::Value& schema, std::string_view what);

}  // namespace rlx::grammar
