#!/usr/bin/env bash
# Runs every benchmark, one after the other, and keeps the results with the machine's description in bench/results/MACHINE; the page with
# charts is build/bench.html, the tables go to docs/performance.md. Usage: scripts/bench.sh build/release
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
machine=$(awk -F '\t*: ' '!($1 in of) { of[$1] = $2 } END { print tolower(of["vendor_id"] "-" of["cpu family"] "-" of["model"]) }' /proc/cpuinfo)
results=bench/results/$machine
mkdir -p "$results"

venv=build/bench-venv
python=$venv/bin/python
[ -x "$python" ] || python3 -m venv "$venv"
export CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF"  # llama.cpp comes as source: built for this machine, without image models
while read -r requirement; do  # one by one: what cannot be had keeps nothing else away, and is named
  "$python" -m pip install --quiet --disable-pip-version-check "$requirement" < /dev/null || echo "bench: $requirement cannot be installed"
done < bench/requirements.txt

echo "== peaks: the limits of this machine"
"$build/bench/peaks" --json "$results/peaks.json"

types=$("$build/bench/gemm" --list-types)
echo "products on this CPU: $types"
for type in $types; do
  for set in model large small memory; do
    echo "== gemm: $set, $type"
    "$build/bench/gemm" --set "$set" --type "$type" --json "$results/gemm_${set}_$type.json"
  done
done
for type in $types; do
  case $type in int8 | f16) continue ;; esac
  echo "== attention: $type"
  "$build/bench/attention" --type "$type" --json "$results/attention_$type.json"
done
echo "== conv"
"$build/bench/conv" --json "$results/conv_f32.json"
echo "== rows"
"$build/bench/rows" --json "$results/rows.json"
echo "== claims beside the generated kernels that they replace"
"$build/bench/claims" --json "$results/claims.json"
echo "== packing weights"
"$build/bench/pack" --json "$results/pack.json"
echo "== compiling a decoder"
"$build/bench/compile" --json "$results/compile.json"
echo "== beside a process that spins on one core"
"$build/bench/busy" --seconds 5 --json "$results/busy.json"
scripts/fetch_minilm.sh build/minilm
echo "== MiniLM: where the time goes"
"$build/bench/sentence_model" --model build/minilm --profile
if ! "$python" -c 'import numpy, safetensors'; then
  echo "bench: no comparison with peers, for which numpy and safetensors are needed"
  exit 1
fi

for type in $types; do
  for set in large small memory; do
    echo "== gemm beside torch: $set, $type"
    "$python" bench/op_peers.py --json "$results/gemm_${set}_${type}_peers.json" -- "$build/bench/gemm" --set "$set" --type "$type"
  done
done
for type in $types; do
  [ "$type" != int8 ] || continue  # torch has neither attention nor convolutions with dynamic quantization
  echo "== attention beside torch: $type"
  "$python" bench/op_peers.py --json "$results/attention_${type}_peers.json" -- "$build/bench/attention" --type "$type"
done
echo "== conv beside torch"
"$python" bench/op_peers.py --json "$results/conv_f32_peers.json" -- "$build/bench/conv"
echo "== rows beside torch"
"$python" bench/op_peers.py --json "$results/rows_peers.json" -- "$build/bench/rows"

echo "== MiniLM beside its peers"
"$python" bench/peers.py --bench "$build/bench/sentence_model" --model build/minilm --cases b1 mixed --precision f32 bf16 int8 \
  --peaks "$results/peaks.json" --no-claims --json "$results/minilm.json"
echo "== BERT-base, random weights, beside its peers"
"$python" bench/bert_base.py build/bert_base
"$python" bench/peers.py --bench "$build/bench/sentence_model" --model build/bert_base --cases b1 b8 --precision f32 bf16 int8 \
  --peaks "$results/peaks.json" --json "$results/bert_base.json"

echo "== ResNet-50 and ViT-B/16 beside their peers"
"$python" bench/vision_peers.py --bench "$build/bench/vision" --folder build/vision --json "$results/vision.json"

echo "== tokenizing beside tokenizers"
"$python" bench/tokenize_peers.py "$build/bench/tokenize" --out "$results/tokenize.json"
if "$python" -c 'import gguf, llama_cpp'; then
  echo "== language models beside llama.cpp"
  "$python" bench/llama_peers.py tokens perplexity speed depth quantize --build "$build" --results "$results"
fi

"$python" bench/report.py "$results" --out build/bench.html --markdown docs/performance.md
