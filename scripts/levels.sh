#!/usr/bin/env bash
# Runs the tests at each level of this machine's CPU below the best, which `make test` runs.
# Usage: scripts/levels.sh build/release JOBS
set -euo pipefail
build=$1 jobs=$2

allowed=()
for level in portable neon avx2 avx512 amx; do
  if RLX_CPU=$level "$build/rlx" devices > /dev/null 2>&1; then allowed+=("$level"); fi
done
echo "levels of this CPU: ${allowed[*]}"
unset 'allowed[-1]'
status=0
for level in "${allowed[@]}"; do
  echo "RLX_CPU=$level"
  RLX_CPU=$level ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$jobs" || status=1
done
exit $status
