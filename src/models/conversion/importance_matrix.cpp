#include "models/conversion/importance_matrix.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/files/mapped_file.h"
#include "base/names.h"
#include "formats/gguf/gguf.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::string_view sums_ending = ".in_sum2", counts_ending = ".counts";

/// The older format: 32-bit numbers and what they count, one after the other.
class LegacyReader {
 public:
  LegacyReader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  std::int64_t number(std::string_view what) {
    std::int32_t value = 0;
    std::memcpy(&value, take(1, sizeof value, what).data(), sizeof value);
    if (value < 0) fail("{}: {}: {} (allowed: at least 0)", name_, what, value);
    return value;
  }
  /// Of things that take `bytes_each` at least.
  std::int64_t count(std::string_view what, std::size_t bytes_each) {
    const std::int64_t value = number(what);
    if (static_cast<std::size_t>(value) > bytes_.size() / bytes_each)
      fail("{}: {}: {} are more than {} bytes can hold", name_, what, value, bytes_.size());
    return value;
  }
  std::span<const std::byte> take(std::int64_t number, std::size_t bytes_each, std::string_view what) {
    const std::size_t wanted = static_cast<std::size_t>(number) * bytes_each;  // `number` is below the file's size
    if (wanted > bytes_.size() - at_) fail("{}: {}: the file ends within it", name_, what);
    at_ += wanted;
    return bytes_.subspan(at_ - wanted, wanted);
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
};

}  // namespace

void ImportanceMatrix::add(std::string tensor, std::vector<float> weights) {
  for (float weight : weights)
    if (!std::isfinite(weight) || weight < 0)
      fail("{}: tensor {}: importance {} (allowed: finite numbers of at least 0)", name_, quote_name(tensor), weight);
  if (!entries_.emplace(tensor, std::move(weights)).second) fail("{}: tensor {} is there twice", name_, quote_name(tensor));
}

void ImportanceMatrix::read_gguf(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::open(path);
  for (const TensorView& sums : file.tensors()) {
    if (!sums.name.ends_with(sums_ending)) continue;
    const std::string tensor = sums.name.substr(0, sums.name.size() - sums_ending.size());
    const std::string counts_name = fmt::format("{}{}", tensor, counts_ending);
    const Array sum = file.array(sums.name), count = file.array(counts_name);
    if (sum.dtype() != f32 || count.dtype() != f32 || count.size() == 0 || sum.size() % count.size() != 0)
      fail("{}: tensor {}: {} sums for {} counts, in f32, are needed to divide evenly", name_, quote_name(sums.name), sum.size(),
           count.size());
    const std::int64_t row = sum.size() / count.size();
    std::vector<float> weights(static_cast<std::size_t>(sum.size()), 1.0f);  // an expert that was never chosen: all alike
    for (std::int64_t i = 0; i < sum.size(); ++i)
      if (const float times = count.values<float>()[static_cast<std::size_t>(i / row)]; times > 0)
        weights[static_cast<std::size_t>(i)] = sum.values<float>()[static_cast<std::size_t>(i)] / times;
    add(tensor, std::move(weights));
  }
  if (entries_.empty()) fail("{}: is no importance matrix: no tensor ends with '{}'", name_, sums_ending);
}

void ImportanceMatrix::read_legacy(const std::filesystem::path& path) {
  const MappedFile mapped = MappedFile::open(path);
  LegacyReader reader(mapped.bytes(), name_);
  const std::int64_t entries = reader.count("number of entries", 12);
  if (entries == 0) fail("{}: is no importance matrix: it has no entries", name_);
  for (std::int64_t entry = 0; entry < entries; ++entry) {
    const std::string what = fmt::format("entry {} of {}", entry + 1, entries);
    const auto text = reader.take(reader.count(what, 1), 1, what);
    const std::int64_t calls = reader.number(what);
    const std::int64_t values = reader.count(what, sizeof(float));
    if (values == 0) fail("{}: {}: has no values", name_, what);
    std::vector<float> weights(static_cast<std::size_t>(values));
    const auto bytes = reader.take(values, sizeof(float), what);
    std::memcpy(weights.data(), bytes.data(), bytes.size());
    for (float& weight : weights)
      if (calls > 0) weight /= static_cast<float>(calls);
    add(std::string(reinterpret_cast<const char*>(text.data()), text.size()), std::move(weights));
  }
}

ImportanceMatrix ImportanceMatrix::open(const std::filesystem::path& path) {
  ImportanceMatrix out;
  out.name_ = path.string();
  const bool gguf = looks_like_gguf(MappedFile::open(path).bytes());
  if (gguf) out.read_gguf(path);
  else out.read_legacy(path);
  return out;
}

std::span<const float> ImportanceMatrix::columns(std::string_view tensor, std::int64_t row, std::int64_t matrices) const {
  const auto found = entries_.find(tensor);
  if (found == entries_.end()) return {};
  const auto size = static_cast<std::int64_t>(found->second.size());
  if (row < 1 || size / row != matrices || size % row != 0)
    fail("{}: tensor {}: {} values, {} columns of {} matrices are needed", name_, quote_name(tensor), size, row, matrices);
  return found->second;
}

}  // namespace rlx
