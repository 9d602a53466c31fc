#!/bin/sh
# Writes cli.md, from the help texts of all commands, ops.md, from the registry, coverage.md, from what each device makes of the registry (of
# MLX, if the build has it) and from the known failures of the Python package, architecture.svg, from the folders of src, house.svg, from the
# includes of the sources, and decisions/README.md, from the decisions; without a FOLDER also the tables and charts of the results of benchmarks.
# Usage: generate_docs.sh [RLX [FOLDER]]: the built command (default: build/release/rlx) and where to write (default: docs).
set -eu
root=$(dirname "$0")/..
rlx=${1:-$root/build/release/rlx}
folder=${2:-$root/docs}
mkdir -p "$folder"
new=$(mktemp -d "$folder/new.XXXXXX")  # what fails midway changes nothing
trap 'rm -rf "$new"' EXIT

help_of() {
  printf '```\n'
  # A width of the terminal must not show, nor blank lines at the ends.
  COLUMNS=80 "$rlx" "$@" --help | sed -e 's/[ \t]*$//' | sed -e '/./,$!d' | sed -e ':a' -e '/^\n*$/{$d;N;ba' -e '}'
  printf '```\n'
}

# The names in the list of subcommands that `rlx --help` prints; lines of continued descriptions are further in.
commands() {
  "$rlx" --help | sed -n -e '/^Subcommands:/,$s/^  \([a-z][a-z_]*\) .*/\1/p' -e '/^SUBCOMMANDS:/,$s/^  \([a-z][a-z_]*\) .*/\1/p'
}

{
  printf '# The command `rlx`\n\nGenerated from the help texts by `scripts/generate_docs.sh`; do not edit.\n\n'
  printf 'Exit status: 0, 1 for an error that the user can mend (one line `rlx: ...` on stderr), 2 for wrong usage, 70 for a fault of RLX itself.\n\n'
  help_of
  for command in $(commands); do
    printf '\n## rlx %s\n\n' "$command"
    help_of "$command"
  done
} > "$new/cli.md"
"$rlx" ops --markdown > "$new/ops.md"
{ "$rlx" ops --coverage && python3 "$root/scripts/array_api_failures.py"; } > "$new/coverage.md"
mkdir -p "$new/decisions" "$folder/decisions"
python3 "$root/scripts/decisions_index.py" > "$new/decisions/README.md"
python3 "$root/scripts/draw_architecture.py" > "$new/architecture.svg"
python3 "$root/scripts/house.py" draw "$new/house.svg"
mv "$new/decisions/README.md" "$folder/decisions"
mv "$new"/*.* "$folder"
[ $# -ge 2 ] || python3 "$root/bench/report.py"
