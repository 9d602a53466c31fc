#pragma once
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/backend.h"
#include "emit/emit.h"
#include "rlx/error.h"

// Kernels made by hand, and functions made of kernels by both dialects.
namespace rlx::test {

/// y[i] = op(x0[i], ...) over one loop; buffers: the operands, then y.
inline Kernel pointwise(ScalarOp op, const std::vector<DType>& operands, DType result) {
  Kernel kernel;
  kernel.loops = {kernel.add_variable(Dim(1 << 30))};
  const Index at = Index::variable(0, kernel.extent(0));
  std::vector<ExprId> args;
  for (DType t : operands) {
    Expr load;
    load.kind = Expr::Kind::load;
    load.dtype = t;
    load.buffer = static_cast<int>(kernel.buffers.size());
    load.index = at;
    load.last = kernel.extent(0) - Dim(1);
    kernel.buffers.push_back({{}, t, false});
    args.push_back(kernel.add(std::move(load)));
  }
  const ExprId y = kernel.scalar(op, std::move(args), result);
  kernel.buffers.push_back({{}, result, true});
  kernel.stores.push_back({static_cast<int>(operands.size()), at, y});
  return kernel;
}

/// The kernel by LLVM, at the level of this machine. The function lives as long as the process.
inline KernelFunction compile_llvm(const Kernel& kernel) {
  static const auto jit = cpu::backend().host_code(cpu::target_of(), {.cache_folder = ""}, 1);
  const KernelText text = emit_llvm(kernel);
  return jit->load(std::span(&text, 1), {})[0];
}

/// A shared library made of texts of C, or what else the compiler is told to read, by that of the system; every warning is an error.
class CompiledC {
 public:
  explicit CompiledC(const std::vector<KernelText>& texts, const std::string& compiler = "cc -std=c11") {
    std::string pattern = (std::filesystem::temp_directory_path() / "rlx-c-XXXXXX").string();
    if (!mkdtemp(pattern.data())) fail_internal("cannot make the folder {}", pattern);
    folder_ = pattern;
    std::string objects;
    for (const KernelText& text : texts) {
      const auto source = folder_ / (text.name + ".c");
      std::ofstream(source) << text.text;
      objects += " " + source.string();
    }
    const std::string library = (folder_ / "kernels.so").string();
    const std::string command =
        compiler + " -O2 -Wall -Wextra -Werror -ffp-contract=off -fPIC -shared" + objects + " -o " + library + " -lm";
    if (std::system(command.c_str()) != 0) fail_internal("the C compiler refuses a kernel: {}", command);
    handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) fail_internal("{}", dlerror());
  }
  ~CompiledC() {
    dlclose(handle_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  CompiledC(const CompiledC&) = delete;
  CompiledC& operator=(const CompiledC&) = delete;

  KernelFunction function(const std::string& name) const {
    auto found = reinterpret_cast<KernelFunction>(dlsym(handle_, name.c_str()));
    if (!found) fail_internal("{}", dlerror());
    return found;
  }

 private:
  std::filesystem::path folder_;
  void* handle_ = nullptr;
};

}  // namespace rlx::test
