// Gradients of random graphs, and random graphs on batches of examples, on the first device of WebGPU.
#include "backends/random_transforms.h"
#include "backends/webgpu_device.h"

namespace rlx::test {
namespace {

using TransformsOnWebGpu = WebGpuTest;
TEST_F(TransformsOnWebGpu, OfRandomGraphs) { expect_transforms_equal(session(), {.begin = 300, .end = 320}, {.begin = 320, .end = 340}); }

}  // namespace
}  // namespace rlx::test
