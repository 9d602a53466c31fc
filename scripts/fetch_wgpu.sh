#!/usr/bin/env bash
# Puts the library of wgpu-native, an implementation of WebGPU, into the folder $1: libwgpu_native.so, or .dylib. It comes from PyPI's
# package wgpu, 3.5 MB, whose hash is checked. The tests use that of build/wgpu.
set -euo pipefail
folder=$1
version=0.32.0
[ ! -e "$folder/$version" ] || exit 0
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) hash=6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568 ;;
  Linux-aarch64) hash=00454ba1bc794d38c8365f4ad29f381b88ce0a7f115133bfaa6f1dfad7eb2764 ;;
  Darwin-arm64) hash=6c3f654ea01ab2de8a2903354ced02a3c6ef161d0fba1aa4fea60aa86d021908 ;;
  *) echo "fetch_wgpu: no library is known for $(uname -s) on $(uname -m)" >&2; exit 1 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
echo "wgpu==$version --hash=sha256:$hash" > "$work/requirements.txt"
"$work/venv/bin/pip" download --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r "$work/requirements.txt" -d "$work"
python3 -m zipfile -e "$work"/wgpu-*.whl "$work/wheel"
mkdir -p "$folder"
for file in "$work"/wheel/wgpu/resources/libwgpu_native-release.*; do cp "$file" "$folder/libwgpu_native.${file##*.}"; done
touch "$folder/$version"
