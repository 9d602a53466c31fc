#!/usr/bin/env bash
# Runs the array API standard's own tests (data-apis/array-api-tests, with its submodule array-api) on rlx.numpy.
# Usage: scripts/array_api_tests.sh CHECKOUT [PYTEST_ARGUMENT...]: CHECKOUT is where they lie; PYTHONPATH finds the package, and python3 has
# what their requirements.txt lists. tests/python/array_api_failures.txt has those that are known to fail, and why.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[ -d "${1:-}/array_api_tests" ] || { echo "usage: $0 CHECKOUT [PYTEST_ARGUMENT...]" >&2; exit 2; }
cd "$1"
shift
export ARRAY_API_TESTS_MODULE=rlx.numpy ARRAY_API_TESTS_VERSION=2024.12
exec python3 -m pytest -q --max-examples 10 --disable-deadline --derandomize -p no:cacheprovider \
  --xfails-file "$root/tests/python/array_api_failures.txt" array_api_tests "$@"
