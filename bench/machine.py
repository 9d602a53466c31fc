"""What a file of results says of where it comes from: the machine and the command."""
import pathlib
import platform
import shlex
import sys

FEATURES = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx512_fp16", "amx_bf16", "amx_int8")


def describe():
    lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n")
    pick = lambda key: next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")
    flags = pick("flags").split()
    return {"processor": pick("model name"), "family": pick("cpu family"), "model": pick("model"),
            "features": [f for f in FEATURES if f in flags], "system": platform.platform()}


def command():
    return shlex.join(["python3", *sys.argv])
