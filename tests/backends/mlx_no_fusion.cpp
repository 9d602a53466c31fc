// Loaded before a test: MLX then traces what it compiles and runs it as it stands, and its CPU calls no compiler.
#include <mlx/compile.h>

namespace {

[[maybe_unused]] const bool is_set = [] {
  mlx::core::set_compile_mode(mlx::core::CompileMode::no_fuse);
  return true;
}();

}  // namespace
