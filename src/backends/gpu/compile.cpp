#include "backends/gpu/compile.h"

#include <algorithm>

#include <fmt/core.h>

namespace rlx::gpu {
namespace {

std::string log_of(const Compiler& compiler, SourceText source) {
  std::size_t bytes = 0;
  if (compiler.GetLogBytes(source, &bytes) != 0) return {};
  std::string log(bytes, '\0');
  if (bytes == 0 || compiler.GetLog(source, log.data()) != 0) return {};
  log.resize(std::min(log.size(), log.find('\0')));
  log.erase(log.find_last_not_of(" \n") + 1);
  constexpr std::size_t most = 2000;
  if (log.size() > most) log.replace(most, std::string::npos, " ...");
  return log;
}

CompiledTexts binary_of(const Compiler& compiler, SourceText source, std::span<const std::string> options) {
  std::vector<const char*> given;
  for (const std::string& option : options) given.push_back(option.c_str());
  Code code = compiler.Compile(source, static_cast<int>(given.size()), given.data());
  if (code != 0) return {{}, fmt::format("{}\n{}", compiler.GetErrorText(code), log_of(compiler, source))};
  std::size_t bytes = 0;
  code = compiler.GetBinaryBytes(source, &bytes);
  std::string binary(bytes, '\0');
  if (code == 0) code = compiler.GetBinary(source, binary.data());
  if (code != 0) return {{}, compiler.GetErrorText(code)};
  return {std::move(binary), {}};
}

}  // namespace

/// Denormal numbers are zeros, see Executable. Products and sums are fused where the text says so.
std::vector<std::string> options_for(Vendor vendor, std::string_view architecture) {
  if (vendor == Vendor::cuda)
    return {fmt::format("--gpu-architecture={}", architecture), "--fmad=false", "--ftz=true", "--disable-warnings"};
  return {"-ffp-contract=off", "-fgpu-flush-denormals-to-zero", "-w"};
}

CompiledTexts compile(const Compiler& compiler, std::span<const KernelText* const> texts, std::span<const std::string> options) {
  std::string all;
  for (const KernelText* text : texts) all += text->text;
  SourceText source = nullptr;
  if (const Code code = compiler.Create(&source, all.c_str(), "kernels.cu", 0, nullptr, nullptr); code != 0)
    return {{}, compiler.GetErrorText(code)};
  CompiledTexts compiled = binary_of(compiler, source, options);
  compiler.Destroy(&source);
  return compiled;
}

}  // namespace rlx::gpu
