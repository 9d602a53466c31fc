#!/usr/bin/env bash
# Prints the levels of this machine's CPU below the best, one a line. Usage: scripts/lower_levels.sh build/release
set -euo pipefail
build=$1

allowed=()
for level in portable neon avx2 avx512 amx; do
  if RLX_CPU=$level "$build/rlx" devices > /dev/null 2>&1; then allowed+=("$level"); fi
done
if [ ${#allowed[@]} -eq 0 ]; then
  echo "lower_levels: $build/rlx devices runs at no level" >&2
  exit 1
fi
unset 'allowed[-1]'
printf '%s\n' "${allowed[@]}"
