#!/usr/bin/env bash
# Runs the tests at each level of this machine's CPU below the best, which `make test` runs.
# Tests of other devices and languages are left out, as they go through the same library.
# Usage: scripts/levels.sh build/release JOBS
set -euo pipefail
build=$1 jobs=$2

levels=$("$(dirname "$0")/lower_levels.sh" "$build")
status=0
for level in $levels; do
  echo "RLX_CPU=$level"
  RLX_CPU=$level ctest --test-dir "$build" --output-on-failure --no-tests=error --label-exclude "^(opencl|gpu|mlx|webgpu|web|python|coreml)$" --parallel "$jobs" || status=1
done
exit $status
