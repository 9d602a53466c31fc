#!/usr/bin/env python3
"""Compares what librlx_c exports with what include/rlx/c.h declares.

usage: c_exports.py LIBRARY
"""
import pathlib
import re
import subprocess
import sys

HEADER = pathlib.Path(__file__).resolve().parent.parent / "include" / "rlx" / "c.h"


def main(library):
    declared = set(re.findall(r"^RLX_API [^;(]*?(\w+)\(", HEADER.read_text(encoding="utf-8"), re.M))
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].partition("@")[0] for line in listed.splitlines()} - {"RLX_0"}
    for name in sorted(declared ^ exported):
        print(f"c_exports: {name} is {'declared, not exported' if name in declared else 'exported, not declared'}")
    sys.exit(1 if declared != exported or not declared else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
