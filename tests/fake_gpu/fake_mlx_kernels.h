#pragma once

namespace rlx::test {

/// What tests ask of fake_mlx_kernels.cpp, under the name `fake_mlx_kernels`.
struct FakeMlxKernels {
  int launches = 0;
  bool computes = true;       // else a launch takes next to no time
  unsigned microseconds = 0;  // that it takes longer
};

}  // namespace rlx::test
