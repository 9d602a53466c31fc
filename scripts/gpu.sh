#!/usr/bin/env bash
# On a machine with a GPU: builds, runs the suites on it, times it beside PyTorch, and prints what was seen as one JSON object.
# The exit status is 1 where a suite failed.
# Usage: scripts/gpu.sh [device, cuda by default] [folder of the build, build/release by default]
set -euo pipefail
cd "$(dirname "$0")/.."
device=${1:-cuda}
build=${2:-build/release}
logs=build/gpu
rm -rf "$logs"
mkdir -p "$logs"

if [ ! -x "$build/tests/backends_tests" ] || [ -f "$build/build.ninja" ]; then  # what was built elsewhere is taken as it is
  {
    [ -f "$build/build.ninja" ] || cmake --preset release
    cmake --build "$build" --target rlx_command backends_tests vectors_tests
  } > "$logs/build.log" 2>&1 || { tail -20 "$logs/build.log" >&2; exit 1; }
fi
described=$("$build/rlx" devices | grep "^$device:[0-9]") || { "$build/rlx" devices >&2; exit 1; }
export RLX_DEVICE=$device RLX_CACHE=

# suite NAME PROCESSES COMMAND...: in so many processes beside the others, as compiling kernels takes most of the time.
declare -A started
suite() {
  local name=$1 processes=$2 part
  shift 2
  for ((part = 0; part < processes; ++part)); do
    {
      export GTEST_TOTAL_SHARDS=$processes GTEST_SHARD_INDEX=$part
      { time -p timeout "${SUITE_SECONDS:-400}" "$@" > "$logs/$name-$part.log" 2>&1; } 2> "$logs/$name-$part.time" && echo passed || echo failed
    } > "$logs/$name-$part.result" &
  done
  started[$name]=$processes
}
tests=$build/tests/backends_tests
suite gpu_registry_long 4 "$tests" --source=backends/gpu_registry_long
suite gpu_registry_others_long 4 "$tests" --source=backends/gpu_registry_others_long
suite gpu_random_graphs_long 3 "$tests" --source=backends/gpu_random_graphs_long
for name in gpu_kernels gpu_memory gpu_graphs gpu_models_long; do
  suite "$name" 1 "$tests" --source="backends/$name"
done
suite vectors 2 "$build/tests/vectors_tests"
wait

status=0
results=
for name in "${!started[@]}"; do
  result=passed
  grep -q failed "$logs/$name"-*.result && result=failed status=1
  skipped=$(cat "$logs/$name"-*.log | grep -c '^\[  SKIPPED \] .* ms)$' || true)
  seconds=$(awk '$1 == "real" && $2 > most { most = $2 } END { print most }' "$logs/$name"-*.time)
  results+="\"$name\": {\"result\": \"$result\", \"skipped\": $skipped, \"seconds\": $seconds}, "
done

python3 bench/gpu_peers.py --rlx "$build/rlx" --device "$device" --json "$logs/peers.json" > "$logs/peers.log" 2>&1 || status=1
measured=$("$build/rlx" devices --measure | grep -A1 "^$device:[0-9]" | sed -n 2p)
python3 - "$described" "$measured" "{${results%, }}" "$logs/peers.json" << 'END'
import json, os, sys
device, measured, suites, peers = sys.argv[1:]
timed = json.load(open(peers)) if os.path.exists(peers) else None
print(json.dumps({"device": device.splitlines()[0], "measured": measured.strip(), "suites": json.loads(suites), "timed": timed}, indent=1))
END
exit $status
