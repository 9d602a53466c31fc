#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"

/// What the registry knows of an op, in words.
namespace rlx::command {

std::string_view kind_word(OpKind kind);

/// "yes", "yes (linear)", "yes (by its body)", or "no: <reason>".
std::string differentiability(const OpDef& op);

/// What values an attribute takes: "axis", "integer", "one of sum, max, min, prod".
std::string attribute_type(const Field& field);
/// The initial value as the text form writes it; empty for arrays and regions, which have none.
std::string attribute_default(const Field& field);

/// Calls of the op that the generated tests run, one for each set of shapes: "(f32[2,3], f32[2,3]) -> f32[2,3]". At most `most`.
std::vector<std::string> type_examples(const OpDef& op, std::size_t most);
/// The element types of the first operand (without operands: of the first result) that the generated tests cover.
std::vector<std::string_view> tested_dtypes(const OpDef& op);

/// docs/ops.md: every op, and the table of the first RLX's op kinds.
std::string ops_document();
/// docs/coverage.md: what each device computes of each op, and why not all.
std::string coverage_document();

}  // namespace rlx::command
