#!/usr/bin/env bash
# On a machine with a GPU: builds, times it beside PyTorch, runs the suites on it, and prints what was seen as one JSON object. Figures come
# first. What fails is told, and the rest goes on; build/gpu/gpu.json has what is known so far at any time. Once built it takes at most
# GPU_SECONDS, 470 by default; suites that have not ended by then are told so. The exit status is 1 where something failed.
# Usage: scripts/gpu.sh [device, cuda by default] [folder of the build, build/release by default]
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
device=${1:-cuda}
build=${2:-build/release}
logs=build/gpu
rm -rf "$logs"
mkdir -p "$logs"

if [ ! -x "$build/tests/backends_tests" ] || [ -f "$build/build.ninja" ]; then  # what was built elsewhere is taken as it is
  {
    { [ -f "$build/build.ninja" ] || cmake --preset release; } && cmake --build "$build" --target rlx_command backends_tests vectors_tests
  } > "$logs/build.log" 2>&1 || tail -20 "$logs/build.log" >&2
fi
"$build/rlx" devices > "$logs/devices.txt" 2>&1
grep -q "^$device:[0-9]" "$logs/devices.txt" || { cat "$logs/devices.txt" >&2; exit 1; }
export RLX_DEVICE=$device RLX_CACHE=
SECONDS=0
left() { echo $((${GPU_SECONDS:-470} - SECONDS)); }

report() {
  python3 - "$logs" "$device" << 'END' > "$logs/gpu.json.new" && mv "$logs/gpu.json.new" "$logs/gpu.json"
import json, pathlib, re, sys
logs, device = pathlib.Path(sys.argv[1]), sys.argv[2]
def text(name):
    return (logs / name).read_text() if (logs / name).exists() else ""
def timed(name):
    return json.loads(text(name)) if text(name) else None
suites = {}
for result in sorted(logs.glob("*.result")):  # of a process: its exit status, and the seconds that it took
    name, words = result.stem.rsplit("-", 1)[0], result.read_text().split()
    suite = suites.setdefault(name, {"result": "passed", "skipped": 0, "seconds": 0.0})
    outcome = {"0": "passed", "124": "not done in time"}.get(words[0], "failed") if words else "not done in time"
    if outcome != "passed" and suite["result"] != "failed":
        suite["result"] = outcome
    suite["seconds"] = max(suite["seconds"], float(words[1]) if words else 0.0)
    suite["skipped"] += len(re.findall(r"^\[  SKIPPED \] .* ms\)$", text(result.stem + ".log"), re.M))
described = re.findall(rf"^{device}:\d+.*$", text("devices.txt"), re.M)
measured = re.findall(rf"^{device}:\d+.*\n +(.*)$", text("measured.txt"), re.M)
print(json.dumps({"device": described[0], "measured": measured[0] if measured else None, "suites": suites, "timed": timed("peers.json")}, indent=1))
END
}
failed() { echo "$1" >> "$logs/failed"; }
finish() {
  trap - EXIT TERM INT
  jobs -p | xargs -r kill 2> /dev/null
  report && cat "$logs/gpu.json"
  [ ! -e "$logs/failed" ] && [ -z "$(grep -L '^0 ' "$logs"/*.result)" ]
  exit
}
trap finish EXIT
trap 'failed interrupted; finish' TERM INT

timeout "$(left)" python3 bench/gpu_peers.py --rlx "$build/rlx" --device "$device" --json "$logs/peers.json" \
  --seconds $(($(left) / 2)) > "$logs/peers.log" 2>&1 &
wait $! || failed gpu_peers.py
timeout $(($(left) / 4)) "$build/rlx" devices --measure > "$logs/measured.txt" 2>> "$logs/peers.log" &
wait $! || failed "devices --measure"
report

# suite NAME PROCESSES COMMAND...: in so many processes beside the others, as compiling kernels takes most of the time.
suite() {
  local name=$1 processes=$2 part
  shift 2
  for ((part = 0; part < processes; ++part)); do
    : > "$logs/$name-$part.result"
    {
      begin=$SECONDS
      GTEST_TOTAL_SHARDS=$processes GTEST_SHARD_INDEX=$part timeout "$(left)" "$@" > "$logs/$name-$part.log" 2>&1
      echo "$? $((SECONDS - begin))" > "$logs/$name-$part.result"
    } &
  done
}
tests=$build/tests/backends_tests
for name in gpu_kernels gpu_memory gpu_graphs gpu_products gpu_attention gpu_models_long; do
  suite "$name" 1 "$tests" --source="backends/$name"
done
suite vectors 2 "$build/tests/vectors_tests"
suite gpu_registry_long 4 "$tests" --source=backends/gpu_registry_long
suite gpu_registry_others_long 4 "$tests" --source=backends/gpu_registry_others_long
suite gpu_random_graphs_long 3 "$tests" --source=backends/gpu_random_graphs_long
suite gpu_transforms_long 2 "$tests" --source=backends/gpu_transforms_long --gtest_filter="EachVendor*"
wait
