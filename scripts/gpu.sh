#!/usr/bin/env bash
# On a machine with a GPU: builds, runs the suites on it, and prints what was seen as one JSON object. The exit status is 1 where a suite failed.
# Usage: scripts/gpu.sh [device, cuda by default] [folder of the build, build/release by default]
set -euo pipefail
cd "$(dirname "$0")/.."
device=${1:-cuda}
build=${2:-build/release}
logs=build/gpu
mkdir -p "$logs"

{
  [ -f "$build/build.ninja" ] || cmake --preset release
  cmake --build "$build" --target rlx_command backends_tests vectors_tests
} > "$logs/build.log" 2>&1 || { tail -20 "$logs/build.log" >&2; exit 1; }
described=$("$build/rlx" devices | grep "^$device:[0-9]") || { "$build/rlx" devices >&2; exit 1; }
export RLX_DEVICE=$device RLX_CACHE=

# suite NAME COMMAND...: started beside the others, as compiling kernels takes most of the time.
declare -A started
suite() {
  local name=$1
  shift
  { { time -p timeout 400 "$@" > "$logs/$name.log" 2>&1; } 2> "$logs/$name.time" && echo passed || echo failed; } > "$logs/$name.result" &
  started[$name]=$!
}
tests=$build/tests/backends_tests
for name in gpu_kernels gpu_memory gpu_graphs gpu_registry_long gpu_registry_others_long gpu_random_graphs_long gpu_models_long; do
  suite "$name" "$tests" --source="backends/$name"
done
suite vectors "$build/tests/vectors_tests"
wait

status=0
results=
for name in "${!started[@]}"; do
  result=$(< "$logs/$name.result")
  [ "$result" = passed ] || status=1
  skipped=$(grep -c '^\[  SKIPPED \] .* ms)$' "$logs/$name.log" || true)
  results+="\"$name\": {\"result\": \"$result\", \"skipped\": $skipped, \"seconds\": $(awk '$1 == "real" { print $2 }' "$logs/$name.time")}, "
done

# profile NAME TEXT: the launches of a graph in its best run.
profiles=
profile() {
  printf '%s\n' "$2" > "$logs/$1.rlx"
  "$build/rlx" profile "$logs/$1.rlx" > "$logs/$1.profile" 2>&1 || status=1
  profiles+="\"$1\": $(python3 -c 'import json, sys; print(json.dumps(open(sys.argv[1]).read().splitlines()))' "$logs/$1.profile"), "
}
profile product 'graph product {
  %x: f32[1024,1024] = input {label="x"}
  %w: f32[1024,1024] = input {label="w"}
  %y = dot(%x, %w) {lhs_contract=[1], rhs_contract=[0]}
  output y = %y
}'
profile softmax 'graph rows {
  %x: f32[8192,8192] = input {label="x"}
  %y = softmax(%x) {axis=1}
  output y = %y
}'
profile gelu 'graph elements {
  %x: f32[8192,8192] = input {label="x"}
  %y = gelu(%x)
  output y = %y
}'
measured=$("$build/rlx" devices --measure | grep -A1 "^$device:[0-9]" | sed -n 2p)
python3 - "$described" "$measured" "{${results%, }}" "{${profiles%, }}" << 'END'
import json, sys
device, measured, suites, profiles = sys.argv[1:]
print(json.dumps({"device": device.splitlines()[0], "measured": measured.strip(), "suites": json.loads(suites), "profiles": json.loads(profiles)}, indent=1))
END
exit $status
