#pragma once
#include "backends/coreml/call.h"
#include "rlx/export.h"

namespace rlx::coreml {

/// A graph as CoreML computes it: the message Model of a package, and the weights that it names.
struct MadeProgram {
  ProtobufWriter model;
  ProgramParts parts;
};

/// The words for who can read a program: the opset, and the version of the message Model.
struct Version {
  const char* opset;
  int specification;
};
Version version_of(Target target);

/// Throws Error: see export_coreml.
MadeProgram make_program(const SavedGraph& saved, const CoreMlOptions& options);

}  // namespace rlx::coreml
