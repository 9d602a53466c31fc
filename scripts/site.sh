#!/usr/bin/env bash
# Builds the documentation as a site of HTML pages (PyPI's mkdocs) and checks that all pages are there.
# Usage: scripts/site.sh FOLDER: FOLDER/index.html is where it begins. Exit status 77: pip finds no packages.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(realpath "$1")
"$root/scripts/python_environment.sh" "$root/scripts/site_requirements.txt" "$folder/tools"
cd "$root"
"$folder/tools/bin/mkdocs" build --quiet --strict --site-dir "$folder/site"
cp "$folder/site/guide.html" "$folder/site/index.html"
for page in docs/*.md; do
  [ -s "$folder/site/$(basename "$page" .md).html" ] || { echo "site: $page is missing" >&2; exit 1; }
done
echo "site: $folder/site/index.html"
