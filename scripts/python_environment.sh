#!/usr/bin/env bash
# Makes a Python environment with the packages that a file lists. Exit status 77: it cannot be had.
# Usage: scripts/python_environment.sh REQUIREMENTS FOLDER
set -euo pipefail
requirements=$1
folder=$2
name=$(basename "$0" .sh)

unavailable() {
  echo "$name: $1" >&2
  exit 77
}
[ -x "$folder/bin/python" ] || python3 -m venv "$folder" || unavailable "python3 has no venv (package python3-venv)"
cmp -s "$requirements" "$folder/requirements.txt" && exit
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" || unavailable "pip finds no packages"
cp "$requirements" "$folder"
