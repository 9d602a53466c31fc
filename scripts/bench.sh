#!/usr/bin/env bash
# Runs every benchmark, one after the other, and keeps the results with the machine's description in bench/results/MACHINE.
# Usage: scripts/bench.sh build/release
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
machine=$(awk -F '\t*: ' '!($1 in of) { of[$1] = $2 } END { print tolower(of["vendor_id"] "-" of["cpu family"] "-" of["model"]) }' /proc/cpuinfo)
results=bench/results/$machine
mkdir -p "$results"

echo "== peaks: the limits of this machine"
"$build/bench/peaks" --json "$results/peaks.json"
echo "== gemm"
"$build/bench/gemm" --json "$results/gemm.json"

echo "== MiniLM beside ONNX Runtime"
scripts/fetch_minilm.sh build/minilm
venv=build/bench-venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
if "$venv/bin/pip" install --quiet --disable-pip-version-check -r bench/requirements.txt; then
  "$venv/bin/python" bench/peers.py --bench "$build/bench/sentence_model" --model build/minilm --json "$results/minilm.json"
else
  echo "bench: ONNX Runtime cannot be installed; only our side runs"
fi
"$build/bench/sentence_model" --model build/minilm --profile
