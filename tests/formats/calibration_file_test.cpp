// Calibrations in files.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/temporary_folder.h"
#include "rlx/calibration.h"
#include "rlx/io.h"

namespace rlx::test {
namespace {

Array numbers(const std::vector<float>& values) { return Array::of<float>({static_cast<std::int64_t>(values.size())}, values); }

TEST(CalibrationFile, GivesTheSameRanges) {
  const TemporaryFolder folder;
  const Calibration calibration{
      {{"dot: f32[B,2] x f32[2,9]", numbers({-1, 0}), numbers({1, 1})}, {"conv: ...", numbers({-3}), numbers({4})}}};
  save_calibration(folder / "ranges", calibration);
  const Calibration loaded = load_calibration(folder / "ranges");
  ASSERT_EQ(loaded.ranges.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(loaded.ranges[i].product, calibration.ranges[i].product);
    EXPECT_EQ(loaded.ranges[i].least, calibration.ranges[i].least);
    EXPECT_EQ(loaded.ranges[i].largest, calibration.ranges[i].largest);
  }
}

TEST(CalibrationFile, OfOtherThingsIsRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "ranges";
  const std::string name = file.string();
  const auto error = [&](const NamedArrays& arrays, const Metadata& metadata) {
    save_safetensors(file, arrays, metadata);
    return error_of([&] { load_calibration(file); });
  };
  const Metadata head{{"format", "rlx calibration"}, {"version", "1"}, {"product 0", "dot: f32[4] x f32[4]"}};
  const Array low = numbers({-1, 0}), high = numbers({1, 1});
  EXPECT_EQ(error({{"w", low}}, {}), name + ": is no calibration (make one with 'rlx calibrate')");
  EXPECT_EQ(error({}, {{"format", "rlx calibration"}, {"version", "7"}}), name + ": this version of calibrations is not known (known: 1)");
  EXPECT_EQ(error({{"0 least", low}}, head), name + ": tensor '0 largest' is missing");
  EXPECT_EQ(error({{"0 least", low}, {"0 largest", Array(f64, {2})}}, head), name + ": tensor '0 largest' is f64, must be f32");
  EXPECT_EQ(error({{"0 least", low}, {"0 largest", numbers({1, 1, 1})}}, head),
            name + ": tensors '0 least' and '0 largest' are of different shapes");
  EXPECT_EQ(error({{"0 least", high}, {"0 largest", low}}, head), name + ": product 0 ranges from 1 to -1 at place 0");
  EXPECT_EQ(error({{"0 least", low}, {"0 largest", numbers({NAN, 1})}}, head), name + ": product 0 ranges from -1 to nan at place 0");
  EXPECT_EQ(error({{"0 least", low}, {"0 largest", high}, {"1 least", low}}, head), name + ": 3 tensors for 1 products (needed: 2 each)");
}

}  // namespace
}  // namespace rlx::test
