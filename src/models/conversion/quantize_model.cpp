#include "models/conversion/quantize_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/names.h"
#include "base/thread_pool.h"
#include "formats/gguf/gguf_writer.h"

namespace rlx {
namespace {

constexpr std::int64_t batch_values = 1 << 21;     // 8 MiB of f32: enough rows for all threads, small beside any model
constexpr std::int64_t rows_made_at_once = 16;     // layouts of other files keep that many in one cache line
constexpr std::uint32_t quantization_version = 2;  // of the block layouts

/// Errors of one worker, on cache lines of its own.
struct alignas(128) Squares {
  double error = 0, source = 0;
};

[[noreturn]] void fail_value(const TensorView& tensor, std::int64_t row, std::int64_t column, float value, const BlockFormat& format,
                             std::string_view file) {
  fail("{}: tensor {}: row {}, column {} is {}, which {} cannot hold", file, quote_name(tensor.name), row, column, value, format.name);
}

void check_finite(const float* values, std::int64_t count, const TensorView& tensor, std::int64_t row, const BlockFormat& format,
                  std::string_view file) {
  constexpr std::uint32_t exponent = 0x7F800000;
  bool finite = true;
  for (std::int64_t i = 0; i < count; ++i) finite &= (std::bit_cast<std::uint32_t>(values[i]) & exponent) != exponent;
  if (finite) return;
  const auto at = std::find_if(values, values + count, [](float value) { return !std::isfinite(value); }) - values;
  fail_value(tensor, row, at, values[at], format, file);
}

double squared(double value) { return value * value; }

/// Of written - source, and of the source; in f32 along a row, several sums at a time for the sake of speed.
std::pair<double, double> sums_of_squares(const std::vector<float>& values, const std::vector<float>& written) {
  constexpr std::size_t lanes = 16;
  std::array<float, lanes> error{}, source{};
  const auto add = [&](std::size_t i, std::size_t lane) {
    const float difference = written[i] - values[i];
    error[lane] += difference * difference;
    source[lane] += values[i] * values[i];
  };
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) add(i + lane, lane);
  for (; i < values.size(); ++i) add(i, 0);
  return {std::accumulate(error.begin(), error.end(), 0.0), std::accumulate(source.begin(), source.end(), 0.0)};
}

/// Writes the tensors of a source one after the other.
class ModelEncoder {
 public:
  ModelEncoder(const ModelSource& source, GgufWriter& writer, const QuantizeOptions& options)
      : source_(source), writer_(writer), options_(options), pool_(options.threads), squares_(static_cast<std::size_t>(options.threads)) {
    for (const SourceTensor& tensor : source.tensors) total_ += values_of(tensor.view);
  }

  void write(const SourceTensor& tensor, const BlockFormat& format, std::span<const float> importance, QuantizedType& report) {
    const bool stored = !tensor.view.data.empty() || tensor.view.make_rows;
    const bool copied = stored && tensor.view.format == &format && importance.empty();
    std::fill(squares_.begin(), squares_.end(), Squares());
    if (copied) copy(tensor);
    else encode(tensor, format, importance);
    for (const Squares& each : squares_) {
      report.error_squares += each.error;
      report.squares += each.source;
    }
  }

 private:
  static std::size_t values_of(const TensorView& view) {
    std::size_t values = 1;
    for (std::int64_t size : view.shape) values *= static_cast<std::size_t>(size);
    return values;
  }

  void advance(std::size_t values) {
    done_ += values;
    if (options_.progress) options_.progress(done_, total_);
  }

  void copy(const SourceTensor& tensor) {
    const TensorView& view = tensor.view;
    if (!view.make_rows) {
      writer_.write(view.data);
      return advance(values_of(view));
    }
    const std::int64_t rows = row_count(view), columns = view.shape.back();
    const std::size_t row = byte_count(view) / static_cast<std::size_t>(std::max<std::int64_t>(rows, 1));
    const std::int64_t batch = std::max<std::int64_t>(1, batch_values / std::max<std::int64_t>(1, columns));
    for (std::int64_t first = 0; first < rows; first += batch) {
      const std::int64_t count = std::min(batch, rows - first);
      blocks_.resize(static_cast<std::size_t>(count) * row);
      pool_.parallel_for(count, rows_made_at_once, [&](std::int64_t begin, std::int64_t end, int) {
        view.make_rows(first + begin, end - begin, blocks_.data() + static_cast<std::size_t>(begin) * row);
      });
      writer_.write(blocks_);
      advance(static_cast<std::size_t>(count * columns));
    }
  }

  void encode(const SourceTensor& tensor, const BlockFormat& format, std::span<const float> importance) {
    const std::int64_t columns = tensor.view.shape.back();
    const auto rows = columns == 0 ? 0 : static_cast<std::int64_t>(values_of(tensor.view)) / columns;
    const std::int64_t batch = std::max<std::int64_t>(1, batch_values / std::max<std::int64_t>(1, columns));
    for (std::int64_t first = 0; first < rows; first += batch) {
      const std::int64_t count = std::min(batch, rows - first);
      encode_rows(tensor, format, importance, first, count);
      writer_.write(blocks_);
      advance(static_cast<std::size_t>(count * columns));
    }
  }

  /// Fills `blocks_` with rows first..first + count.
  void encode_rows(const SourceTensor& tensor, const BlockFormat& format, std::span<const float> importance, std::int64_t first,
                   std::int64_t count) {
    const std::int64_t columns = tensor.view.shape.back(), row_bytes = columns / format.values * format.bytes;
    blocks_.resize(static_cast<std::size_t>(count * row_bytes));
    const std::int64_t matrices = importance.empty() ? 1 : static_cast<std::int64_t>(importance.size()) / columns;
    const std::int64_t matrix_rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(values_of(tensor.view)) / columns / matrices);
    pool_.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      std::vector<float> values(static_cast<std::size_t>(columns)), written(values.size());
      Squares& squares = squares_[static_cast<std::size_t>(worker)];
      for (std::int64_t row = first + begin; row < first + end; ++row) {
        std::byte* blocks = blocks_.data() + (row - first) * row_bytes;
        tensor.read_rows(row, 1, values.data());
        if (format.values > 1) check_finite(values.data(), columns, tensor.view, row, format, source_.name);
        format.encode(values.data(), importance.empty() ? nullptr : importance.data() + row / matrix_rows * columns, blocks, columns);
        format.decode(blocks, written.data(), columns);
        add_squares(values, written, tensor.view, row, format, squares);
      }
    });
  }

  /// What is not finite in the source as well counts in no sum. Throws Error for a value that the format turned into an infinity.
  void add_squares(const std::vector<float>& values, const std::vector<float>& written, const TensorView& tensor, std::int64_t row,
                   const BlockFormat& format, Squares& squares) const {
    const auto [error, source] = sums_of_squares(values, written);
    if (std::isfinite(error) && std::isfinite(source)) {
      squares.error += error;
      squares.source += source;
      return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      if (!std::isfinite(written[i])) fail_value(tensor, row, static_cast<std::int64_t>(i), values[i], format, source_.name);
      squares.error += squared(static_cast<double>(written[i]) - values[i]);
      squares.source += squared(values[i]);
    }
  }

  const ModelSource& source_;
  GgufWriter& writer_;
  const QuantizeOptions& options_;
  ThreadPool pool_;
  std::vector<Squares> squares_;  // of each worker
  std::vector<std::byte> blocks_;
  std::size_t done_ = 0, total_ = 0;
};

QuantizedType& entry_of(QuantizeReport& report, std::string_view type) {
  const auto found = std::find_if(report.types.begin(), report.types.end(), [&](const QuantizedType& each) { return each.type == type; });
  return found != report.types.end() ? *found : report.types.emplace_back(QuantizedType{.type = std::string(type)});
}

/// The weights of a tensor's columns; empty where there are none.
std::span<const float> importance_of(const TensorView& view, const BlockFormat& format, const ImportanceMatrix* matrix,
                                     QuantizeReport& report) {
  if (!matrix || format.values == 1) return {};
  std::int64_t matrices = 1;
  for (std::size_t axis = 0; axis + 2 < view.shape.size(); ++axis) matrices *= view.shape[axis];
  const auto columns = matrix->columns(view.name, view.shape.back(), matrices);
  if (columns.empty()) report.unweighted.push_back(view.name);
  return columns;
}

std::vector<TypeChoice> choices_for(const ModelSource& source, const std::vector<TensorView>& views, const TypeMix* mix,
                                    const QuantizeOptions& options) {
  if (mix) {
    ModelFacts facts = source.facts;
    facts.importance = options.importance != nullptr;
    return choose_types(*mix, views, facts, options.overrides, options.pure);
  }
  std::vector<TypeChoice> kept;
  for (const TensorView& view : views) kept.push_back({view.format, false});
  return kept;
}

}  // namespace

double QuantizedType::relative_error() const { return squares > 0 ? std::sqrt(error_squares / squares) : 0; }

QuantizeReport quantize_model(const ModelSource& source, const std::filesystem::path& target, const TypeMix* mix,
                              const QuantizeOptions& options) {
  std::vector<TensorView> views = source.views();
  const std::vector<TypeChoice> choices = choices_for(source, views, mix, options);
  for (std::size_t i = 0; i < views.size(); ++i) views[i].format = choices[i].format;
  GgufMetadata metadata = source.metadata;
  if (mix && mix->file_type == no_file_type) metadata.erase("general.file_type");
  else if (mix) metadata.set("general.file_type", mix->file_type);
  metadata.set("general.quantization_version", quantization_version);

  QuantizeReport report;
  report.losses = source.losses;
  GgufWriter writer(target, metadata, views);
  ModelEncoder encoder(source, writer, options);
  for (std::size_t i = 0; i < views.size(); ++i) {
    const SourceTensor& tensor = source.tensors[i];
    const BlockFormat& format = *choices[i].format;
    if (choices[i].fallback) report.fallbacks.push_back(views[i].name);
    QuantizedType& entry = entry_of(report, format.name);
    encoder.write(tensor, format, importance_of(tensor.view, format, options.importance, report), entry);
    std::int64_t values = 1;
    for (std::int64_t size : views[i].shape) values *= size;
    const auto bytes = static_cast<std::int64_t>(block_bytes(format, views[i].shape, views[i].name));
    ++entry.tensors;
    entry.values += values;
    entry.bytes += bytes;
    report.values += values;
    report.bytes += bytes;
    report.source_bytes += static_cast<std::int64_t>(block_bytes(*tensor.view.format, views[i].shape, views[i].name));
  }
  writer.commit();
  std::stable_sort(report.types.begin(), report.types.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return report;
}

}  // namespace rlx
