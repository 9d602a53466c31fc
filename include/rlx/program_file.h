#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "rlx/session.h"

namespace rlx {

/// Compiled graphs in a file, by custom FILE.rlxp: launches, sizes, memory, constants, and the machine code of kernels, or on devices their
/// texts. It is opened without lowering, and on x86-64 without LLVM.
///
/// A program is made for one version of RLX and one target: a device with its driver, or a level of the CPU, from avx512 on also this very
/// processor. A file may hold one for each target.
///
/// What is in a file is run as code. Hashes tell what was cut short or altered, not who wrote it: open files of those whom you trust alone.
struct ProgramFile {
  /// Where a parameter or state has its value.
  struct Source {
    std::string name;            // of the parameter or state
    std::filesystem::path file;  // .npy, or .safetensors
    std::string tensor = {};     // its name in .safetensors; empty: the file is .npy
  };
  enum class Weights : std::uint8_t { outside, inside };

  /// Writes executables of one graph, each of another target. Of the values of parameters and states it says where they are: `sources`,
  /// with hashes of their files. With Weights::inside those that are bound are in the file, too. Throws Error where two executables are of
  /// one target, and for a device that takes graphs whole.
  static void save(const std::filesystem::path& file, std::span<const Executable> executables, std::span<const Source> sources = {},
                   Weights weights = Weights::outside);

  /// The executable for the device, in a session of its own, with the values that the file has or says the places of: a file of weights
  /// that was altered since is an Error. On the CPU that of the highest level that it has, but none above
  /// `options.cpu_level`; of Device::automatic that of the first device of Device::all() that it has one for. Options for compiling say
  /// nothing here. It begins with the graph as lowered: `dump(Stage::hir)` shows that, too. Throws Error for a file that was cut short or
  /// altered, or that was written for other versions or targets: names the field, what was seen and what is allowed.
  static Executable load(const std::filesystem::path& file, const Device& device = Device::usual(), const SessionOptions& options = {});

  /// The hash of all that a file has, in 32 hexadecimal digits. The same graph, compiled for the same targets, has the same. Throws Error
  /// for a file whose beginning is not as it was written; `load` checks the rest, too.
  static std::string hash(const std::filesystem::path& file);

  /// The inputs and outputs of an executable, as a graph.
  static const Graph& graph(const Executable& executable);

  struct Access;  // for the library's own use
};

}  // namespace rlx
