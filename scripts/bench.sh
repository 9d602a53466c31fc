#!/usr/bin/env bash
# Runs every benchmark of a folder, one after the other. Usage: scripts/bench.sh build/release/bench
set -euo pipefail
shopt -s nullglob
for benchmark in "$1"/*; do
  [ -f "$benchmark" ] && [ -x "$benchmark" ] || continue
  echo "== $(basename "$benchmark")"
  "$benchmark"
done
