#pragma once
#include <string>
#include <vector>

#include "coreml/features.h"
#include "formats/temporary_folder.h"
#include "rlx/export.h"
#include "rlx/session.h"

namespace rlx::test {

/// A graph as a package, and the inputs of its runs.
struct Package {
  std::string name;
  SavedGraph saved;
  std::vector<NamedArrays> runs;
  CoreMlOptions options = {};
  double bound = 1e-5;  // of floats, beside the largest element of an output
};

inline void write_runs(const Package& package, const std::filesystem::path& folder) {
  export_coreml(folder / "model.mlpackage", package.saved, package.options);
  for (std::size_t run = 0; run < package.runs.size(); ++run) {
    const std::filesystem::path inputs = folder / fmt::format("in_{}", run + 1);
    std::filesystem::create_directories(inputs);
    for (const auto& [name, array] : package.runs[run]) save_npy(inputs / (name + ".npy"), as_feature(array));
  }
}

/// `seen` is a feature.
inline void expect_near(const Array& seen, const Array& computed, double bound) {
  const Array wanted = as_feature(computed);
  ASSERT_EQ(seen.shape(), wanted.shape());
  double largest = 1;
  for (std::int64_t i = 0; i < wanted.size(); ++i) largest = std::max(largest, std::abs(wanted.get_double(i)));
  const double most = is_float(wanted.dtype()) ? bound * largest : 0;
  for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(seen.get_double(i), wanted.get_double(i), most) << "element " << i;
}

/// What the evaluator gives for each run is what the CPU gives.
inline void expect_numbers_of_cpu(const Package& package, const std::filesystem::path& folder) {
  SCOPED_TRACE(package.name);
  ASSERT_FALSE(std::filesystem::exists(folder / "error.txt")) << read_text(folder / "error.txt");
  const Precision precision = package.options.precision == Precision::int8 ? Precision::int8 : Precision::f32;
  const SessionOptions options{.precision = precision, .calibration = package.options.calibration, .round_activations = false};
  Executable executable = Session(Device::cpu(), options).compile(package.saved.graph);
  for (const auto& [name, array] : package.saved.weights) executable.set_param(name, array);
  for (std::size_t run = 0; run < package.runs.size(); ++run) {
    SCOPED_TRACE(fmt::format("run {}", run + 1));
    std::map<std::string, Feed> feeds;  // without what packages read more
    for (const auto& [input, value] : package.saved.graph.inputs())
      if (const auto array = package.runs[run].find(input.name); array != package.runs[run].end()) feeds.emplace(*array);
    for (const auto& [name, wanted] : executable.run(feeds)) {
      SCOPED_TRACE(name);
      expect_near(load_npy(folder / fmt::format("out_{}", run + 1) / (name + ".npy")), wanted, package.bound);
    }
  }
}

inline void expect_numbers_of_cpu(const std::vector<Package>& packages) {
  const TemporaryFolder folder;
  for (const Package& package : packages) write_runs(package, folder / package.name);
  run_packages(folder.path());
  for (const Package& package : packages) expect_numbers_of_cpu(package, folder / package.name);
}

/// Floats from -1 to 1 that differ.
inline Array floats_like_noise(std::vector<std::int64_t> shape, std::uint32_t seed = 1) {
  Array array(f32, std::move(shape));
  for (std::int64_t i = 0; i < array.size(); ++i) {
    seed = seed * 1664525 + 1013904223;
    array.set_double(i, static_cast<double>(seed >> 8) / (1 << 23) - 1);
  }
  return array;
}

}  // namespace rlx::test
