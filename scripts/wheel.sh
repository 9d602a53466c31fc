#!/usr/bin/env bash
# Builds a wheel that stands alone (FOLDER/dist), and tries it in an environment of its own, where it may load nothing but itself, the C and
# C++ libraries and what pip installs. With PREFIX it holds the RLX that is installed there, else one that is built for it.
# Usage: scripts/wheel.sh FOLDER [PREFIX]. Exit status 77: pip finds no packages.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
prefix=${2:-}
most_megabytes=25
tools=$folder/tools/bin

"$root/scripts/python_environment.sh" "$root/tests/python/wheel_requirements.txt" "$folder/tools"
options=()
if [ -n "$prefix" ]; then
  options=(-C cmake.source-dir=bindings/python -C "build.targets=rlx_python;rlx_python_stub" -C "cmake.define.CMAKE_PREFIX_PATH=$prefix")
  if [ -n "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ]; then
    options+=(-C "cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=$CMAKE_CXX_COMPILER_LAUNCHER")
  fi
fi
rm -rf "$folder/whole" "$folder/dist"
PATH=$tools:$PATH "$tools/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  -C "build-dir=$folder/build" "${options[@]}" -w "$folder/whole" "$root"
PATH=$tools:$PATH "$tools/auditwheel" repair --strip --plat "manylinux_2_36_$(uname -m)" -w "$folder/dist" "$folder"/whole/*.whl

wheel=$(echo "$folder"/dist/*.whl)
bytes=$(stat -c %s "$wheel")
echo "wheel: $(basename "$wheel") has $((bytes / 1000)) kB"
[ "$bytes" -le $((most_megabytes * 1000000)) ] || { echo "wheel: more than $most_megabytes MB" >&2; exit 1; }

rm -rf "$folder/user"
python3 -m venv "$folder/user"
"$folder/user/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
cd "$folder/user"
bin/rlx --version
env -u PYTHONPATH -u LD_LIBRARY_PATH bin/python "$root/tests/python/wheel_user.py"
