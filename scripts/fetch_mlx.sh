#!/usr/bin/env bash
# Installs MLX with its C++ headers into the folder $1, as an environment of Python: the build finds it in build/mlx. 11 MB from PyPI.
set -euo pipefail
folder=$1
version=0.32.4
if compgen -G "$folder/lib/python3*/site-packages/mlx-$version.dist-info" > /dev/null; then exit 0; fi
case "$(uname -s)" in
  Darwin) package=mlx ;;
  *) package='mlx[cpu]' ;;
esac
python3 -m venv "$folder"
"$folder/bin/pip" install --disable-pip-version-check "$package==$version"
