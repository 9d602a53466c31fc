#include "rlx/convert.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/cpu_count.h"
#include "base/files/mapped_file.h"
#include "base/names.h"
#include "formats/checkpoint.h"
#include "models/config/model_folder.h"
#include "models/conversion/adapter_writer.h"
#include "models/conversion/dense_model.h"
#include "models/conversion/folder_source.h"
#include "models/conversion/folder_writer.h"
#include "models/conversion/quantize_model.h"
#include "models/weights/adapter_file.h"
#include "models/weights/quantized/folder_weights.h"

namespace rlx {
namespace {

using Path = std::filesystem::path;

bool is_folder(const Path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

/// A folder, or a GGUF file that says so.
bool is_adapter_path(const Path& path) {
  if (is_folder(path)) return is_adapter_folder(path);
  return looks_like_gguf(MappedFile::open(path).bytes()) && is_adapter(GgufFile::open(path));
}

/// What is read where `path` names a model or an adapter: a folder and its files, or a file with all its parts.
std::vector<Path> sources_of(const Path& path) {
  std::vector<Path> sources{path};
  std::error_code error;
  if (is_folder(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error))
      if (entry.path().extension() != ".gguf") sources.push_back(entry.path());
  } else if (looks_like_gguf(MappedFile::open(path).bytes())) {
    for (const std::string& part : GgufFile::open(path).part_names()) sources.emplace_back(part);
  }
  return sources;
}

/// What is written may be coarser, and the source would be gone.
void check_not_read(const Path& source, const Path& out) {
  std::error_code error;
  if (!std::filesystem::exists(out, error)) return;
  for (const Path& each : sources_of(source))
    if (std::filesystem::equivalent(each, out, error)) fail("{}: is what is read; give what is written another name", out.string());
}

/// Whether what is written under that name is a folder.
bool names_folder(const Path& path) { return path.extension().empty() || is_folder(path); }

TypeOverride type_override(const std::string& pattern, const std::string& type) {
  const BlockFormat* format = find_block_format(type);
  std::vector<std::string_view> known;
  for (const BlockFormat& each : block_formats()) known.push_back(each.name);
  if (!format) fail("tensor type {}: unknown type {}{}", quote_name(pattern), quote_name(type), near_or_allowed(type, known));
  return {pattern, Regex(pattern, fmt::format("tensor type {}", quote_name(pattern))), format};
}

QuantizeReport write_gguf(const ModelSource& source, const Path& out, const ConvertOptions& options) {
  QuantizeOptions quantize{.pure = options.pure, .overrides = {}, .progress = options.progress};
  quantize.threads = options.threads > 0 ? options.threads : granted_cpus();
  for (const auto& [pattern, type] : options.tensor_types) quantize.overrides.push_back(type_override(pattern, type));
  std::optional<ImportanceMatrix> importance;
  if (!options.importance.empty()) quantize.importance = &importance.emplace(ImportanceMatrix::open(options.importance));
  QuantizeReport report = quantize_model(source, out, options.type.empty() ? nullptr : &find_type_mix(options.type), quantize);
  report.files = {out};
  return report;
}

std::vector<Path> convert_adapter(const Path& in, const Path& out, const ConvertOptions& options) {
  if (options.base.empty()) fail("{}: is an adapter; --base names the model that it changes, a folder or a GGUF file", in.string());
  if (out.extension() == ".gguf") return write_gguf_adapter(in, options.base, out), std::vector{out};
  if (names_folder(out)) return write_adapter_folder(in, options.base, out);
  fail("{}: the name of an adapter that is written must end with .gguf, or be that of a folder (a / behind it where it has a dot)",
       quote_name(out.string()));
}

std::vector<Path> convert_to_folder(const Path& in, const Path& out, const ConvertOptions& options) {
  const Checkpoint checkpoint = Checkpoint::open(in);
  if (checkpoint.gguf() == nullptr) fail("{}: a folder is made of a GGUF file", quote_name(in.string()));
  return write_model_folder(*checkpoint.gguf(), out, options.dtype, options.progress);
}

/// A .safetensors file of a sentence-transformers folder would lack the weights that are not the encoder's.
void check_no_modules_with_weights(const Path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder / "modules.json", error)) return;
  const ConfigFile file = ConfigFile::open(folder / "modules.json");
  for (const JsonField& module : file.root().items()) {
    const auto path = module.find("path");
    const std::string name = path ? path->as_string() : "";
    if (!name.empty() && std::filesystem::exists(folder / name / "model.safetensors", error))
      fail(
          "{}: {} has weights of its own, for which a .safetensors file has no place (a .gguf file has; of the encoder alone: name its "
          "file)",
          folder.string(), quote_name(name));
  }
}

std::vector<Path> convert_to_file(const Path& in, const Path& out, const ConvertOptions& options) {
  if (is_folder(in)) check_no_modules_with_weights(in);
  write_dense(open_weights(in), out, options.dtype, options.progress);
  return {out};
}

QuantizeReport report_of(std::vector<Path> files) {
  std::ranges::sort(files);
  QuantizeReport report;
  report.files = std::move(files);
  return report;
}

/// A folder's model, or that of a GGUF file.
ModelSource model_source(const Path& in) {
  if (is_folder(in)) return source_of_folder(in);
  if (in.extension() == ".safetensors") fail("{}: does not say which model it is; its folder, with config.json, does", in.string());
  return source_of(GgufFile::open(in));
}

}  // namespace

QuantizeReport quantize(const Path& in, const Path& out, const ConvertOptions& options) {
  check_not_read(in, out);
  return write_gguf(model_source(in), out, options);
}

QuantizeReport convert(const Path& in, const Path& out, const ConvertOptions& options) {
  check_not_read(in, out);
  if (options.dtype != f32 && options.dtype != f16 && options.dtype != bf16)
    fail("dtype {} (allowed: f32, f16, bf16)", name(options.dtype));
  if (!options.base.empty()) check_not_read(options.base, out);
  if (is_adapter_path(in)) return report_of(convert_adapter(in, out, options));
  if (!options.base.empty()) fail("{}: is no adapter, which alone has a --base", in.string());
  if (out.extension() == ".gguf") return write_gguf(model_source(in), out, options);
  if (out.extension() == ".safetensors") return report_of(convert_to_file(in, out, options));
  if (names_folder(out)) return report_of(convert_to_folder(in, out, options));
  fail("{}: the name of what is written must end with .gguf or .safetensors, or be that of a folder (a / behind it where it has a dot)",
       quote_name(out.string()));
}

}  // namespace rlx
