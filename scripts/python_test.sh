#!/usr/bin/env bash
# Runs tests of the Python module that scripts/python_module.sh has built into FOLDER.
# Usage: scripts/python_test.sh FOLDER PYTEST_ARGUMENT...: exit status 77 where there is no module.
set -euo pipefail
folder=$1
shift
[ -d "$folder/package/rlx" ] || { echo "python_test: the module was not built, see the test python_module" >&2; exit 77; }
PYTHONPATH=$folder/package exec "$folder/venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
