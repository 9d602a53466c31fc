// Every registered op on its samples, by functions that MLX compiles: it calls a compiler for each kernel that it did not make before.
#include "backends/mlx_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class EveryOpCompiledByMlx : public MlxTest {};

TEST_F(EveryOpCompiledByMlx, FirstPart) { expect_part(session_of_mode("compiled"), 0, 2); }
TEST_F(EveryOpCompiledByMlx, SecondPart) { expect_part(session_of_mode("compiled"), 1, 2); }

}  // namespace
}  // namespace rlx::test
