"""What a file of results says of where it comes from, the machine and the command; and the limits of that machine."""
import json
import pathlib
import platform
import shlex
import sys

ARITHMETIC = {"f32": ["f32"], "bf16": ["bf16 tile", "bf16 dot"], "int8": ["int8 tile", "int8 dot"]}  # the first that the machine has
FEATURES = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx512_fp16", "amx_bf16", "amx_int8")


def describe():
    lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n")
    pick = lambda key: next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")
    flags = pick("flags").split()
    return {"processor": pick("model name"), "family": pick("cpu family"), "model": pick("model"),
            "features": [f for f in FEATURES if f in flags], "system": platform.platform()}


def peak(path, threads, precision):
    """The rate of multiply-adds in a precision with so many threads, from the file that bench/peaks wrote; None without one."""
    if not path:
        return None
    rows = json.loads(pathlib.Path(path).read_text())["peaks"]
    rates = next((row["operations_per_s"] for row in rows if row["threads"] == threads), {})
    return next((rates[name] for name in ARITHMETIC[precision] if name in rates), None)


def command():
    return shlex.join(["python3", *sys.argv])
