#!/usr/bin/env bash
# Embeds the sentences of examples/sentences.txt with all-MiniLM-L6-v2.
# Usage: scripts/demo.sh [folder of the build, build/release by default]
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/release}
folder=build/minilm
scripts/fetch_minilm.sh "$folder"
"$build/rlx" embed --model "$folder" --similarity --timing examples/sentences.txt
echo
echo "Yours: echo 'Hello, world' | $build/rlx embed --model $folder --json"
