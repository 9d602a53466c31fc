// The other half of registry_long_test.cpp.
#include "web/browser_samples.h"

namespace rlx::test {
namespace {

class OtherSamplesInBrowser : public BrowserTest {};

TEST_F(OtherSamplesInBrowser, Default) { expect_part(*this, 1, 2); }

}  // namespace
}  // namespace rlx::test
