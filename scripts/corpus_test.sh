#!/usr/bin/env bash
# Tests corpora on Ray and Dask with the Python module that ctest has built (python_module) in BUILD.
# Usage: scripts/corpus_test.sh BUILD: exit status 0 too where pip finds no packages.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(realpath "$1")/python_test
[ -d "$folder/package/rlx" ] || { echo "corpus_test: the module was not built, see the test python_module" >&2; exit 1; }
"$root/scripts/python_environment.sh" "$root/tests/corpus/requirements.txt" "$folder/ray" || { [ $? -eq 77 ] && exit 0; exit 1; }
export PYTHONPATH=$folder/package RLX_FIXTURES=$root/tests/fixtures RAY_USAGE_STATS_ENABLED=0 RAY_worker_niceness=0
exec "$folder/ray/bin/python" -m pytest -q -p no:cacheprovider "$root/tests/corpus"
