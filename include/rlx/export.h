#pragma once
#include <filesystem>

#include "rlx/dim.h"
#include "rlx/io.h"

namespace rlx {

struct CoreMlOptions {
  Bindings sizes = {};           // of symbols: a package has fixed shapes
  std::string description = {};  // shown by Xcode
};

/// Writes a graph and its weights as a CoreML package (a folder OUT.mlpackage), whole or not at all: an ML Program for iOS 17 and macOS 14
/// on. Inputs and outputs keep their names, of letters, digits and _; numbers are f32, f16 and i32 there, bools and narrow integers i32.
/// Throws Error for a name that exists, a symbol without a size, a parameter without a value, and naming the op and its type for what
/// CoreML lacks.
void export_coreml(const std::filesystem::path& out, const SavedGraph& saved, const CoreMlOptions& options = {});

}  // namespace rlx
