#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rlx/dtype.h"

namespace rlx {

/// What writing the tensors of one type has cost.
struct QuantizedType {
  std::string type;  ///< as GGUF names it: "Q4_K"
  std::int64_t tensors = 0, values = 0, bytes = 0;
  double error_squares = 0, squares = 0;  ///< sums over all values: (written - source)², source²

  /// Root of the mean square of the error, relative to that of the source; 0 where the source is 0.
  double relative_error() const;
};

struct QuantizeReport {
  std::vector<QuantizedType> types;     ///< the largest first
  std::vector<std::string> fallbacks;   ///< tensors whose rows are no whole blocks of the type that they were to get
  std::vector<std::string> unweighted;  ///< quantized tensors that an importance matrix, where given, does not know
  /// Tokens of which GGUF files cannot say all, as "<mask> (lstrip)": texts may become other ones.
  std::vector<std::string> losses;
  std::int64_t source_bytes = 0, bytes = 0, values = 0;
  std::vector<std::filesystem::path> files = {};  ///< that were written, in the order of their names
};

struct ConvertOptions {
  /// Of the weights in a GGUF file: a block type or a mix such as "Q4_K_M", as of `rlx quantize --type`. Empty: as the source has them.
  std::string type = {};
  DType dtype = f32;                      ///< of the floats in safetensors files and folders: f32, f16 or bf16
  std::filesystem::path importance = {};  ///< how much the columns of each matrix matter: a GGUF imatrix or the older .dat
  bool pure = false;                      ///< one type for all that is quantized
  /// Types of the matrices whose names a regular expression finds; the first that fits counts.
  std::vector<std::pair<std::string, std::string>> tensor_types = {};
  std::filesystem::path base = {};  ///< of an adapter: the model that it changes, a folder or a GGUF file
  int threads = 0;                  ///< 0: as many as the process may use
  std::function<void(std::size_t done, std::size_t total)> progress = {};  ///< in values
};

/// Writes a model in the form that the name of `out` says. `in` is a folder in Hugging Face's layout or a GGUF file. A name that ends with
/// .gguf is a GGUF file, .safetensors all tensors as floats under the names of the source; any other is a folder, made of
/// a GGUF file, and needs a / behind it where it has a dot and is not there yet. Adapters (PEFT's folders and GGUF files) become one
/// another. Files appear when they are complete; what was there before stays until then. Of what is no GGUF file the report has the files
/// alone. Throws Error naming file, tensor or option for what is malformed, unknown or has no such form.
QuantizeReport convert(const std::filesystem::path& in, const std::filesystem::path& out, const ConvertOptions& options = {});

/// Writes the model `in`, a folder in Hugging Face's layout or a GGUF file, as a GGUF file, whatever its name, with weights of
/// `options.type`.
QuantizeReport quantize(const std::filesystem::path& in, const std::filesystem::path& out, const ConvertOptions& options);

}  // namespace rlx
