#!/usr/bin/env bash
# Builds the Python module against an installed package, in an environment with what its tests need (tests/python/requirements.txt).
# Usage: scripts/python_module.sh PREFIX FOLDER: FOLDER/venv is the environment, FOLDER/package holds `rlx`. Exit status 77: it cannot be had.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
prefix=$1
folder=$2
python=$folder/venv/bin/python

unavailable() {
  echo "python_module: $1" >&2
  exit 77
}
python3 -c 'import sysconfig, os, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
  unavailable "there is no Python.h (package python3-dev)"
"$root/scripts/python_environment.sh" "$root/tests/python/requirements.txt" "$folder/venv"

cmake -S "$root/bindings/python" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
  -DPython_EXECUTABLE="$python" ${CMAKE_CXX_COMPILER_LAUNCHER:+-DCMAKE_CXX_COMPILER_LAUNCHER="$CMAKE_CXX_COMPILER_LAUNCHER"} > "$folder/configure.log" ||
  { cat "$folder/configure.log" >&2; exit 1; }
cmake --build "$folder/build"
rm -rf "$folder/package"
mkdir -p "$folder/package"
cp -r "$root/python/rlx" "$folder/package"
cp "$folder/build"/_core.*so "$folder/build/_core.pyi" "$folder/package/rlx"
