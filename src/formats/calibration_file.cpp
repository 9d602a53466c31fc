#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "rlx/calibration.h"
#include "rlx/io.h"

namespace rlx {
namespace {

constexpr std::string_view format = "rlx calibration", version = "1";

std::string product_key(std::size_t i) { return fmt::format("product {}", i); }
std::string end_name(std::size_t i, std::string_view end) { return fmt::format("{} {}", i, end); }

const Array& tensor(const std::filesystem::path& path, const TensorFile& file, const std::string& name) {
  const auto found = file.arrays.find(name);
  if (found == file.arrays.end()) fail("{}: tensor '{}' is missing", path.string(), name);
  if (found->second.dtype() != f32) fail("{}: tensor '{}' is {}, must be f32", path.string(), name, rlx::name(found->second.dtype()));
  return found->second;
}

void check_range(const std::filesystem::path& path, std::size_t i, const CalibratedRange& range) {
  if (range.least.shape() != range.largest.shape())
    fail("{}: tensors '{}' and '{}' are of different shapes", path.string(), end_name(i, "least"), end_name(i, "largest"));
  const auto least = range.least.values<float>(), largest = range.largest.values<float>();
  for (std::size_t k = 0; k < least.size(); ++k)
    if (!std::isfinite(least[k]) || !std::isfinite(largest[k]) || least[k] > largest[k])
      fail("{}: product {} ranges from {} to {} at place {}", path.string(), i, least[k], largest[k], k);
}

}  // namespace

void save_calibration(const std::filesystem::path& path, const Calibration& calibration) {
  NamedArrays arrays;
  Metadata metadata{{"format", std::string(format)}, {"version", std::string(version)}};
  for (std::size_t i = 0; i < calibration.ranges.size(); ++i) {
    const CalibratedRange& range = calibration.ranges[i];
    metadata[product_key(i)] = range.product;
    arrays[end_name(i, "least")] = range.least;
    arrays[end_name(i, "largest")] = range.largest;
  }
  save_safetensors(path, arrays, metadata);
}

Calibration load_calibration(const std::filesystem::path& path) {
  const TensorFile file = load_safetensors(path);
  const auto is = [&](const char* key, std::string_view value) {
    const auto found = file.metadata.find(key);
    return found != file.metadata.end() && found->second == value;
  };
  if (!is("format", format)) fail("{}: is no calibration (make one with 'rlx calibrate')", path.string());
  if (!is("version", version)) fail("{}: this version of calibrations is not known (known: {})", path.string(), version);
  Calibration calibration;
  while (true) {
    const std::size_t i = calibration.ranges.size();
    const auto product = file.metadata.find(product_key(i));
    if (product == file.metadata.end()) break;
    calibration.ranges.push_back({product->second, tensor(path, file, end_name(i, "least")), tensor(path, file, end_name(i, "largest"))});
    check_range(path, i, calibration.ranges.back());
  }
  if (file.arrays.size() != 2 * calibration.ranges.size())
    fail("{}: {} tensors for {} products (needed: 2 each)", path.string(), file.arrays.size(), calibration.ranges.size());
  return calibration;
}

}  // namespace rlx
