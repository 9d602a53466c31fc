#include "base/named_call.h"

namespace rlx {
namespace {

thread_local std::string_view innermost_name;

}  // namespace

NamedCall::NamedCall(std::string_view name) : outer_(innermost_name) { innermost_name = name; }
NamedCall::~NamedCall() { innermost_name = outer_; }
std::string_view NamedCall::innermost() { return innermost_name; }

}  // namespace rlx
