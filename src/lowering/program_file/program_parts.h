#pragma once
#include "lowering/program.h"
#include "lowering/program_file/parts.h"

namespace rlx {

/// A program without its machine code: what `read_program` gives back is the same, word for word where it is printed.
void write_program(ProgramWriter& way, const Program& program);
/// Throws Error for launches that do not fit the graph.
Program read_program(ProgramReader& way);

/// How what a claim computes is read again: `kind` is what Claimed::kind says of it. Made once, beside what writes it.
struct RegisterClaimed {
  using Read = std::shared_ptr<const Claimed> (*)(ProgramReader& way);
  RegisterClaimed(std::string_view kind, Read read);
};

}  // namespace rlx
