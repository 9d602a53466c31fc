#pragma once

/// Everything a program needs: graphs, ops, transforms, sessions, files.
#include "rlx/array.h"
#include "rlx/calibrator.h"
#include "rlx/graph.h"
#include "rlx/io.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/tensor.h"
#include "rlx/text.h"
#include "rlx/transform.h"
