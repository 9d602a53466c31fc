#!/usr/bin/env bash
# Runs every benchmark, one after the other, and keeps the results with the machine's description in bench/results/MACHINE; the page with
# charts is build/bench.html, the tables lie beside the results. What fails or cannot be had is named, and named again at the end, and the
# others go on; the exit status is then 1. Usage: scripts/bench.sh build/release [name]...: all of them, or those whose names begin so.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
wanted=("$@")
machine=$(awk -F '\t*: ' '!($1 in of) { of[$1] = $2 } END { print tolower(of["vendor_id"] "-" of["cpu family"] "-" of["model"]) }' /proc/cpuinfo)
results=bench/results/$machine
mkdir -p "$results"
missing=()

report_missing() {
  echo "bench: $1"
  missing+=("$1")
}

# run NAME COMMAND...: the benchmark NAME, where it is wanted.
run() {
  local name=$1 prefix
  shift
  for prefix in "${wanted[@]:-}"; do
    [[ $name == "$prefix"* ]] || continue
    echo "== $name"
    "$@" < /dev/null || report_missing "$name failed (exit status $?)"
    return 0
  done
}

venv=build/bench-venv
python=$venv/bin/python
[ -x "$python" ] || python3 -m venv "$venv"
export CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF"  # llama.cpp comes as source: built for this machine, without image models
while read -r requirement; do  # one by one: what cannot be had keeps nothing else away, and is named
  "$python" -m pip install --quiet --disable-pip-version-check "$requirement" < /dev/null || report_missing "$requirement cannot be installed"
done < bench/requirements.txt

run peaks "$build/bench/peaks" --json "$results/peaks.json"
types=$("$build/bench/gemm" --list-types)
echo "products on this CPU: $types"
for type in $types; do
  for set in model large small memory; do
    run "gemm_${set}_$type" "$build/bench/gemm" --set "$set" --type "$type" --json "$results/gemm_${set}_$type.json"
  done
  case $type in int8 | f16) continue ;; esac  # attention is computed in f32 or bf16
  run "attention_$type" "$build/bench/attention" --type "$type" --json "$results/attention_$type.json"
done
for type in $types; do
  run "conv_$type" "$build/bench/conv" --precision "$type" --json "$results/conv_$type.json"
done
run rows "$build/bench/rows" --json "$results/rows.json"
run claims "$build/bench/claims" --json "$results/claims.json"
levels=$(scripts/lower_levels.sh "$build")
for level in $levels; do
  run "claims_$level" env RLX_CPU="$level" "$build/bench/claims" --json "$results/claims_$level.json"
done
run pack "$build/bench/pack" --json "$results/pack.json"
run compile "$build/bench/compile" --json "$results/compile.json"
run compile_families "$build/bench/compile_families" --json "$results/compile_families.json"
run busy "$build/bench/busy" --seconds 5 --json "$results/busy.json"
scripts/fetch_minilm.sh build/minilm
run minilm_profile "$build/bench/sentence_model" --model build/minilm --profile

# Beside peers, each in one run with ours. Torch multiplies f16 element by element on CPUs without AVX512-FP16, some shapes for minutes, and has
# neither attention nor convolutions with dynamic quantization.
peers() { run "$1" "$python" bench/op_peers.py --json "$results/$1.json" -- "${@:2}"; }
for type in $types; do
  [ "$type" != f16 ] || continue
  for set in large small memory; do
    peers "gemm_${set}_${type}_peers" "$build/bench/gemm" --set "$set" --type "$type"
  done
  [ "$type" = int8 ] || peers "attention_${type}_peers" "$build/bench/attention" --type "$type"
done
peers conv_f32_peers "$build/bench/conv"
peers rows_peers "$build/bench/rows"
run library "$python" bench/library_peers.py "$build/bench/library" --json "$results/library.json"
run recurrent "$python" bench/recurrent_peers.py "$build/bench/recurrent" --json "$results/recurrent.json"
run sums "$python" bench/sums_peers.py "$build/bench/sums" --json "$results/sums.json"
run minilm "$python" bench/peers.py --bench "$build/bench/sentence_model" --model build/minilm --cases b1 mixed --precision f32 bf16 int8 \
  --peaks "$results/peaks.json" --no-claims --json "$results/minilm.json"
bert_base() {
  "$python" bench/bert_base.py build/bert_base
  "$python" bench/peers.py --bench "$build/bench/sentence_model" --model build/bert_base --cases b1 b8 --precision f32 bf16 int8 \
    --peaks "$results/peaks.json" --json "$results/bert_base.json"
}
run bert_base bert_base
run vision "$python" bench/vision_peers.py --bench "$build/bench/vision" --folder build/vision --peaks "$results/peaks.json" \
  --json "$results/vision.json"
run training "$python" bench/training_peers.py --bench "$build/bench/training" --folder build/training --json "$results/training.json"
run tokenize "$python" bench/tokenize_peers.py "$build/bench/tokenize" --out "$results/tokenize.json"
for case in tokens perplexity speed depth quantize; do
  run "llama_$case" "$python" bench/llama_peers.py "$case" --build "$build" --results "$results"
done
run llama_families "$python" bench/llama_families.py --build "$build" --results "$results"
run llama_limits "$python" bench/llama_limits.py --build "$build" --results "$results"
# By the module that the test python_module has built.
run python env PYTHONPATH="$build/python_test/package" "$python" bench/python_bars.py --build "$build" --work build/llama \
  --encoder build/minilm --json "$results/python.json"

python3 bench/report.py "$results" --html build/bench.html
for name in "${missing[@]:-}"; do [ -z "$name" ] || echo "bench: missing: $name"; done
[ ${#missing[@]} -eq 0 ]
