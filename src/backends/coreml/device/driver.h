#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rlx::coreml {

enum class Number : std::uint8_t { f32, f16, i32 };

/// An array of a model's, row by row in `bytes`: of `const std::byte` what it reads, of `std::byte` what it writes.
template <class Byte>
struct ModelArray {
  std::string name;
  Number number = Number::f32;
  std::vector<std::int64_t> shape;
  std::span<Byte> bytes;
};
using Given = ModelArray<const std::byte>;
using Wanted = ModelArray<std::byte>;

/// What the system chose for an operation of a package: "Neural Engine", "GPU" or "CPU".
struct Placement {
  std::string operation, unit;
};

/// What the system computes a package by. Calls come one at a time.
struct Model {
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  /// Fills the outputs. Empty, or what failed.
  virtual std::string run(std::span<const Given> inputs, std::span<const Wanted> outputs) = 0;
  /// Empty where it does not say.
  virtual std::vector<Placement> placements() = 0;
};

/// What librlx_coreml has under the name `library_entry`: the glue to CoreML, which is in Objective-C++ and made on Apple's systems alone.
struct Library {
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;

  struct Compiled {
    std::filesystem::path folder;  // the caller's, to remove behind the model that reads it
    std::string error;             // where there is none
  };
  virtual Compiled compile(const std::filesystem::path& package) = 0;
  struct Opened {
    std::unique_ptr<Model> model;
    std::string error;  // where there is none
  };
  /// `units`: all, cpu, gpu or ane, which are those and the CPU.
  virtual Opened open(const std::filesystem::path& compiled, const std::string& units) = 0;

  std::string title;               // the chip
  int version = 0;                 // of iOS, whose packages it opens
  std::vector<std::string> units;  // that there are
};
using LibraryEntry = Library* (*)();
inline constexpr const char* library_entry = "rlx_open_coreml";

}  // namespace rlx::coreml
