#!/usr/bin/env bash
# Runs the shell commands of a document, its blocks that begin with ```sh, one after the other. The first that fails ends it.
# Usage: run_document_commands.sh DOCUMENT RLX FOLDER: the command to run as `rlx`, and the folder with the files that the document names.
set -euo pipefail
document=$(realpath "$1") rlx=$(realpath "$2")
cd "$3"
awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$document" > commands.sh
[ -s commands.sh ] || { echo "$document has no commands" >&2; exit 1; }
PATH=$(dirname "$rlx"):$PATH bash -euxo pipefail commands.sh
