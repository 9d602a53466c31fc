// Every registered op by functions that MLX compiles: it calls a compiler for each kernel that it did not make before.
#include "backends/mlx_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class EveryOpCompiledByMlx : public MlxTest {};

TEST_F(EveryOpCompiledByMlx, FirstSample) { expect_first_samples(session_of_mode("compiled")); }

}  // namespace
}  // namespace rlx::test
