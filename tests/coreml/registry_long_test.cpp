// Every sample of every op as a package of CoreML, which coremltools loads and mil_evaluator.py runs; see there. What is refused is so for
// a reason that is a fact of CoreML.
#include "rlx/export.h"

#include <fstream>
#include <iterator>

#include "backends/coreml/call.h"
#include "backends/registry_samples.h"
#include "coreml/features.h"
#include "passes/exact_activations.h"
#include "rlx/io.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

/// A package on the disk, with what it must give.
struct ExportedCase {
  const Case* of;
  fs::path folder;
  std::vector<Array> wanted;
  std::vector<double> rounding;
};

Array from_feature(const Array& seen, const Array& wanted) {
  if (seen.size() != wanted.size()) return seen;
  Array result(wanted.dtype(), wanted.shape());
  for (std::int64_t i = 0; i < seen.size(); ++i)
    is_float(wanted.dtype()) ? result.set_double(i, seen.get_double(i))
    : wanted.dtype() == u32  ? result.set_int(i, static_cast<std::uint32_t>(seen.get_int(i)))
                             : result.set_int(i, seen.get_int(i));
  return result;
}

Array part_of(const Array& array, bool imaginary) {
  Array part(f32, array.shape());
  for (std::int64_t i = 0; i < array.size(); ++i) part.set_double(i, imaginary ? array.get_complex(i).imag() : array.get_complex(i).real());
  return part;
}

/// Complex numbers are two features.
void save_feature(const fs::path& name, const Array& array) {
  if (!is_complex(array.dtype())) return save_npy(name.string() + ".npy", as_feature(array));
  save_npy(name.string() + "_real.npy", as_feature(part_of(array, false)));
  save_npy(name.string() + "_imag.npy", as_feature(part_of(array, true)));
}

Array load_feature(const fs::path& name, const Array& wanted) {
  if (!is_complex(wanted.dtype())) return from_feature(load_npy(name.string() + ".npy"), wanted);
  const Array re = load_npy(name.string() + "_real.npy"), im = load_npy(name.string() + "_imag.npy");
  Array result(wanted.dtype(), wanted.shape());
  for (std::int64_t i = 0; i < result.size(); ++i) result.set_complex(i, {re.get_double(i), im.get_double(i)});
  return result;
}

std::optional<ExportedCase> export_case(const Case& c, const fs::path& folder, std::map<std::string, int>& refused) {
  const auto operands = random_operands(c.sample, 3);
  const Graph graph = graph_of(c, false);
  SavedGraph saved{graph, {}};
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (is_param(c, i)) saved.weights.emplace("x" + std::to_string(i), operands[i]);
  try {
    export_coreml(folder / "model.mlpackage", saved, {.computes_random_bits = true});
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("coreml: ")) << c.name() << ": " << error.what();
    EXPECT_FALSE(fs::exists(folder / "model.mlpackage")) << "something is left of what was refused";
    std::string why = error.what();
    ++refused[why.substr(why.rfind(':'))];
    return std::nullopt;
  }
  fs::create_directories(folder / "in");
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!is_param(c, i)) save_feature(folder / "in" / ("x" + std::to_string(i)), operands[i]);
  ExportedCase exported{&c, folder, evaluate(with_exact_activations(graph), named(operands)), {}};  // a package rounds none
  exported.rounding = rounding_of_reference(c, operands, exported.wanted);
  return exported;
}

void check(const ExportedCase& exported) {
  SCOPED_TRACE(exported.of->name());
  if (fs::exists(exported.folder / "error.txt")) {
    std::ifstream file(exported.folder / "error.txt");
    ADD_FAILURE() << std::string(std::istreambuf_iterator<char>(file), {});
    return;
  }
  for (std::size_t i = 0; i < exported.wanted.size(); ++i) {
    const Array seen = load_feature(exported.folder / "out" / ("y" + std::to_string(i)), exported.wanted[i]);
    expect_equal(*exported.of, seen, exported.wanted[i], exported.rounding[i]);
  }
}

TEST(CoreMl, EveryPrimitiveHasARowOrAnExpansion) {
  for (const auto& [name, op] : op_registry())
    if (op->kind != OpKind::composite && op->kind != OpKind::source) {
      const auto* const row = coreml::table().find(name);
      EXPECT_TRUE(op->expansion || (row && (row->rule || !row->reason.empty()))) << name;
    }
}

TEST(CoreMl, EverySample) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const fs::path folder = fs::temp_directory_path() / "rlx_coreml_registry";
  fs::remove_all(folder);
  std::vector<ExportedCase> all;
  std::map<std::string, int> refused;
  const std::vector<Case> cases = all_cases();
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (auto exported = export_case(cases[i], folder / std::to_string(i), refused)) all.push_back(std::move(*exported));
  run_packages(folder);
  for (const ExportedCase& exported : all) check(exported);
  fmt::print("{} of {} samples ran\n", all.size(), cases.size());
  for (const auto& [why, times] : refused) fmt::print("{} refused{}\n", times, why);
  if (!HasFailure()) fs::remove_all(folder);  // else they stay to be looked at
}

}  // namespace
}  // namespace rlx::test
