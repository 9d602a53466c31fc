#pragma once
#include <fstream>

#include "backends/coreml/device/backend.h"
#include "coreml/evaluator.h"
#include "formats/temporary_folder.h"
#include "rlx/io.h"

namespace rlx::test {

/// In place of CoreML: a package is run by mil_evaluator.py, as often as it is asked for. `folder` has it as m/model.mlpackage.
class PythonModel : public coreml::Model {
 public:
  explicit PythonModel(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::string run(std::span<const coreml::Given> inputs, std::span<const coreml::Wanted> outputs) override {
    const std::filesystem::path in = folder_ / "m" / "in", out = folder_ / "m" / "out", error = folder_ / "m" / "error.txt";
    std::filesystem::remove_all(in);
    std::filesystem::remove_all(out);
    std::filesystem::create_directory(in);
    for (const auto& input : inputs) save_npy(in / (input.name + ".npy"), Array(type_of(input.number), input.shape, input.bytes, nullptr));
    run_packages(folder_);
    if (std::filesystem::exists(error)) return read_text(error);
    for (const auto& output : outputs) {
      const Array made = load_npy(out / (output.name + ".npy"));
      if (made.dtype() != type_of(output.number) || made.shape() != output.shape) return output.name + " has another type";
      std::ranges::copy(made.bytes(), output.bytes.begin());
    }
    return {};
  }

  std::vector<coreml::Placement> placements() override { return {{"matmul", "GPU"}, {"softmax", "CPU"}, {"matmul", "GPU"}}; }

 private:
  static DType type_of(coreml::Number number) { return number == coreml::Number::f32 ? f32 : number == coreml::Number::f16 ? f16 : i32; }
  std::filesystem::path folder_;
};

struct PythonModels : coreml::Library {
  PythonModels() { title = "mil_evaluator.py", version = 18, units = {"all"}; }

  Compiled compile(const std::filesystem::path& package) override {
    const std::filesystem::path folder = compiled / std::to_string(opened++);
    std::filesystem::create_directories(folder / "m");
    std::filesystem::copy(package, folder / "m" / "model.mlpackage", std::filesystem::copy_options::recursive);
    return {folder, {}};
  }
  Opened open(const std::filesystem::path& folder, const std::string& /*units*/) override {
    return {std::make_unique<PythonModel>(folder), {}};
  }
  int opened = 0;            // packages
  TemporaryFolder compiled;  // those that are there
};

}  // namespace rlx::test
