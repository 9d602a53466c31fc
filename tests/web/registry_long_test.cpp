// Every registered op on its samples in a browser, whose checker (Tint) refuses more than others do: every second sample, and
// registry_others_long_test.cpp the others.
#include "web/browser_samples.h"

namespace rlx::test {
namespace {

class EveryOpInBrowser : public BrowserTest {};

TEST_F(EveryOpInBrowser, Default) { expect_part(*this, 0, 2); }

}  // namespace
}  // namespace rlx::test
