// Loaded before a test, in the place of MLX's function that launches kernels of Metal: writes the function around a body as MLX 0.32 does
// (mlx/backend/common/metal_kernel.cpp), compiles it as C++ with tests/metal/metal_stdlib, its address spaces checked by Clang, and runs
// all threads on MLX's CPU in an order that is none. Results begin as what no kernel writes.
#include "fake_gpu/fake_mlx_kernels.h"

#include <dlfcn.h>
#include <mlx/mlx.h>
#include <unistd.h>

#include <map>
#include <stdexcept>

#include "fake_gpu/files.h"

extern "C" [[gnu::visibility("default")]] rlx::test::FakeMlxKernels fake_mlx_kernels;
rlx::test::FakeMlxKernels fake_mlx_kernels;

namespace mlx::core::fast {
namespace {

using Run = void (*)(void** arguments, unsigned threads);

constexpr std::size_t most_constant = 8;  // elements of an array that is passed in Metal's constant space
constexpr std::string_view types = R"(#include <metal_stdlib>
typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t; typedef long int64_t; typedef unsigned long uint64_t;
struct uint3 { unsigned x, y, z; };
)";

std::string type_of(Dtype t) {
  if (t == float32) return "float";
  const auto kind = kindof(t);
  if (kind != Dtype::Kind::i && kind != Dtype::Kind::u) throw std::invalid_argument("fake metal_kernel: no such type");
  return (kind == Dtype::Kind::u ? "uint" : "int") + std::to_string(8 * t.size()) + "_t";
}

struct Text {
  std::string parameters, arguments;
  void add(const std::string& qualified, Dtype dtype, const std::string& name) {
    const std::string type = type_of(dtype), place = std::to_string(count++);
    parameters += "  " + qualified + " " + type + "* " + name + " [[buffer(" + place + ")]],\n";
    arguments += "(" + type + "*)arguments[" + place + "], ";
  }
  int count = 0;
};

Run compiled(const std::string& text) {
  const rlx::test::Folder folder;
  rlx::test::write_file(folder.path / "kernels.cpp", text);
  const std::string compiler = RLX_FAKE_COMPILER " -std=c++17 -I " RLX_FAKE_METAL;
  std::string log = rlx::test::compile_library(folder.path, compiler + " -DRLX_ADDRESS_SPACES -fsyntax-only");
  if (log.empty()) log = rlx::test::compile_library(folder.path, compiler + " -O1");
  void* const library = log.empty() ? dlopen((folder.path / "kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) throw std::runtime_error("fake metal_kernel: " + log + "\n" + text);
  return reinterpret_cast<Run>(dlsym(library, "run_all"));
}

}  // namespace

CustomKernelFunction metal_kernel(const std::string& name, const std::vector<std::string>& input_names,
                                  const std::vector<std::string>& output_names, const std::string& source, const std::string& header, bool,
                                  bool, const CompileOptions&) {
  return [=](const std::vector<array>& inputs, const std::vector<Shape>& shapes, const std::vector<Dtype>& dtypes,
             std::tuple<int, int, int> grid, std::tuple<int, int, int> group, auto&&...) {
    const auto [threads, y, z] = grid;
    if (inputs.size() != input_names.size() || shapes.size() != output_names.size() || dtypes.size() != shapes.size() || threads <= 0 ||
        y != 1 || z != 1 || std::get<0>(group) <= 0 || std::get<0>(group) > 1024)
      throw std::invalid_argument("fake metal_kernel: a launch is refused");
    Text text;
    std::vector<array> given, results;
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      given.push_back(contiguous(inputs[i]));
      text.add(inputs[i].size() < most_constant ? "const constant" : "const device", inputs[i].dtype(), input_names[i]);
    }
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      results.push_back(full(shapes[i], 77, dtypes[i]));
      text.add("device", dtypes[i], output_names[i]);
    }
    eval(given);
    eval(results);
    for (array& each : given) pointers.push_back(each.data<char>());
    for (array& each : results) pointers.push_back(each.data<char>());
    const std::string whole = std::string(types) + header + "[[kernel]] void custom_kernel_" + name + "(\n" + text.parameters +
                              "  uint3 thread_position_in_grid [[thread_position_in_grid]]) {\n" + source + "\n}\n" +
                              "#ifndef RLX_ADDRESS_SPACES\nextern \"C\" void run_all(void** arguments, unsigned threads) {\n" +
                              "  for (unsigned t = 0; t < threads; ++t)\n    custom_kernel_" + name + "(" + text.arguments +
                              "uint3{(unsigned)((t * 1000003ul + 17) % threads), 0, 0});\n}\n#endif\n";
    static std::map<std::string, Run>& known = *new std::map<std::string, Run>;
    auto& run = known[whole];
    if (!run) run = compiled(whole);
    if (fake_mlx_kernels.computes) run(pointers.data(), static_cast<unsigned>(threads));
    ++fake_mlx_kernels.launches;
    ::usleep(fake_mlx_kernels.microseconds);
    return results;
  };
}

}  // namespace mlx::core::fast
