#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/json/json_field.h"
#include "models/weights/quantized/scales.h"

namespace rlx::quantized {

/// The tensors of a layer that make its matrix: `<module>.qweight` and what lies beside it. Every size of them is at least 1.
class QuantizedModule {
 public:
  QuantizedModule(std::shared_ptr<const Checkpoint> checkpoint, std::string name)
      : checkpoint_(std::move(checkpoint)), name_(std::move(name)) {}

  /// The tensor `<module>.weight`, which is made.
  std::string matrix_name() const { return name_ + ".weight"; }
  /// Keeps the bytes of all tensors alive.
  const std::shared_ptr<const Checkpoint>& owner() const { return checkpoint_; }
  const TensorView* find(std::string_view ending) const;
  /// Throws Error naming the tensor that is missing.
  const TensorView& at(std::string_view ending) const;
  /// A tensor of two axes. Throws Error naming the one that has others.
  const TensorView& matrix(std::string_view ending, DType dtype) const;
  /// Throws Error naming the tensor, what it is and what it has to be.
  const TensorView& at(std::string_view ending, DType dtype, std::vector<std::int64_t> shape) const;
  [[noreturn]] void refuse(const TensorView& tensor, const std::string& needed) const;

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::string name_;
};

/// How the matrices of a folder are quantized.
class Scheme {
 public:
  virtual ~Scheme() = default;
  /// Whether the tensor holds the codes of a matrix.
  virtual bool is_codes(const TensorView& tensor) const = 0;
  /// The endings of the tensors beside the codes of a matrix.
  virtual std::span<const std::string_view> others() const = 0;
  /// The matrix (outputs, inputs) of a layer. Throws Error naming the tensor that is missing or does not fit the others.
  virtual TensorView matrix(const QuantizedModule& module) const = 0;
};

/// The group of each column: `size` columns after the other, or as the tensor `g_idx` (columns) says. Throws Error naming the tensor.
std::vector<std::int32_t> groups_in_order(std::int64_t columns, std::int64_t size);
std::vector<std::int32_t> groups_of(const TensorView& g_idx, std::int64_t groups);

/// How many columns share a scale, by the field `group_size`: all where it is missing or -1. Throws Error naming it for another size
/// below 1.
std::int64_t group_size(const std::optional<JsonField>& field, std::int64_t columns);
inline std::int64_t group_count(std::int64_t columns, std::int64_t size) { return (columns + size - 1) / size; }

/// A scheme by the quantization_config of a config.json; null where it says that nothing is quantized. Each throws Error naming the field
/// that is missing, or not supported.
std::unique_ptr<Scheme> gptq_scheme(const JsonField& config);
std::unique_ptr<Scheme> awq_scheme(const JsonField& config);
std::unique_ptr<Scheme> float8_scheme(const JsonField& config);
std::unique_ptr<Scheme> compressed_tensors_scheme(const JsonField& config);

/// Of 8-bit floats, with scales for blocks of that many rows and columns, for rows, or for the whole.
std::unique_ptr<Scheme> float8_scheme(std::optional<std::pair<std::int64_t, std::int64_t>> block);
/// Sizes of blocks, [rows, columns].
std::pair<std::int64_t, std::int64_t> block_sizes(const JsonField& field);

}  // namespace rlx::quantized
