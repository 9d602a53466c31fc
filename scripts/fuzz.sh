#!/usr/bin/env bash
# Runs every fuzzer of a build folder for FUZZ_SECONDS, two at a time, and fails if one of them found something. GoogleTest's
# GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX choose a part of them, as of the tests.
# Usage: scripts/fuzz.sh build/asan-ubsan. Inputs that led to findings stay in <build folder>/findings, corpora in <build folder>/corpus;
# fuzz/seeds/<name> holds the first inputs where the format is hard to guess.
set -euo pipefail
build=$1

run_fuzzer() {
  local fuzzer=$1 build=$2 name
  name=$(basename "$fuzzer")
  local corpus=$build/corpus/$name findings=$build/findings/$name log=$build/findings/$name.log
  mkdir -p "$corpus" "$findings"
  local inputs=("$corpus")
  if [ -d "fuzz/seeds/$name" ]; then inputs+=("fuzz/seeds/$name"); fi
  if "$fuzzer" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=1 \
      -artifact_prefix="$findings/" "${inputs[@]}" > "$log" 2>&1 < /dev/null; then
    echo "$name: $(awk '/stat::number_of_executed_units/ { print $2 }' "$log") inputs, no finding"
  else
    tail -n 60 "$log"
    echo "$name: FAILED, inputs in $findings"
    return 1
  fi
}
export -f run_fuzzer

shopt -s nullglob
fuzzers=("$build"/fuzz/*_fuzz)
[ ${#fuzzers[@]} -gt 0 ] || { echo "fuzz: no fuzzer in $build/fuzz" >&2; exit 1; }
chosen=()
for i in "${!fuzzers[@]}"; do
  [ $((i % ${GTEST_TOTAL_SHARDS:-1})) -ne "${GTEST_SHARD_INDEX:-0}" ] || chosen+=("${fuzzers[i]}")
done
printf '%s\0' "${chosen[@]}" | xargs -0 -P 2 -I '{}' bash -euo pipefail -c 'run_fuzzer "$1" "$2"' run_fuzzer '{}' "$build"
