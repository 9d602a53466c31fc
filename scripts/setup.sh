#!/usr/bin/env bash
# Installs the packages of scripts/packages.txt, or of the file $1 beside it, that are missing. With none missing it does nothing and needs
# no network.
set -euo pipefail
cd "$(dirname "$0")"
list=${1:-packages.txt}

if ! command -v dpkg-query > /dev/null; then
  echo "setup: this is not Debian; install the equivalents of scripts/$list yourself" >&2
  exit 0
fi

installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null)" = installed ]
}

missing=()
for package in $(sed 's/#.*//' "$list"); do
  installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "setup: installing ${missing[*]}"

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null || { echo "setup: neither root nor sudo; as root, run: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
