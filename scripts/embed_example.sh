#!/usr/bin/env bash
# Builds examples/LANGUAGE (c, rust, go) against an installed RLX in FOLDER, and embeds a sentence with an encoder.
# Usage: scripts/embed_example.sh LANGUAGE PREFIX FOLDER ENCODER. Exit status 77: there is no compiler.
set -euo pipefail
language=$1
prefix=$(realpath "$2")
folder=$3
encoder=$4
source=$(cd "$(dirname "$0")/.." && pwd)/examples/$language

need() {
  command -v "$1" > /dev/null || { echo "embed_example: there is no $1 (package $2)" >&2; exit 77; }
}
libraries=$(dirname "$(find "$prefix" -name librlx_c.so)")
mkdir -p "$folder"
case $language in
  c) "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -I"$prefix/include" "$source/embed.c" -L"$libraries" -lrlx_c -o "$folder/embed" ;;
  rust)
    need rustc rustc
    rustc -D warnings -L "$libraries" -l rlx_c "$source/embed.rs" -o "$folder/embed" ;;
  go)
    need go golang-go
    GOCACHE=$(realpath "$folder")/cache CGO_CFLAGS="-I$prefix/include" CGO_LDFLAGS="-L$libraries" go build -o "$folder/embed" "$source/embed.go" ;;
esac
LD_LIBRARY_PATH=$libraries "$folder/embed" "$encoder" "a cat sits on the mat"
status=0
LD_LIBRARY_PATH=$libraries "$folder/embed" "$encoder/nowhere" "a cat" 2> "$folder/error" || status=$?
grep -q nowhere "$folder/error" && [ "$status" -eq 1 ]
