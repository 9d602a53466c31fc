#pragma once
#include "kernel/schedule.h"

namespace rlx {

/// Where loops over one variable follow each other, marks what a later one would compute again at some cost as kept from the earlier.
void keep_rows(const Kernel& kernel, Scheduled& scheduled);

}  // namespace rlx
