"""The package and its generated stubs are read by mypy without a fault."""
import os
import subprocess
import sys

import pytest

import rlx


def test_mypy_finds_no_fault(tmp_path):
    package = os.path.dirname(rlx.__file__)
    checked = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), package], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_mypy_finds_a_users_faults(tmp_path):
    source = tmp_path / "user.py"
    source.write_text("import rlx\nrlx.Session(threads='two')\nrlx.Dim('B')\nmodel = rlx.Model.open('m')\nx: rlx.Array = rlx.asarray(1)\n"
                      "b = rlx.Dim('B', 8)\nhalf: rlx.Dim = b + 1 - (b // 2) % 3\nif 0 < b >= abs(-b): print(x * b, b * x, range(b))\n")
    path = os.path.dirname(os.path.dirname(rlx.__file__))
    checked = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--follow-imports=silent", str(source)],
                             capture_output=True, text=True, env={**os.environ, "MYPYPATH": path})  # fmt: skip
    lines = sorted({int(line.split(":")[1]) for line in checked.stdout.splitlines() if ": error:" in line})
    assert lines == [2, 3], checked.stdout


def test_pyright_finds_the_same_and_no_more(tmp_path):
    source = tmp_path / "user.py"
    source.write_text("import rlx\nrlx.Session(threads='two')\nrlx.Dim('B')\nf = rlx.jit(rlx.grad(lambda x: rlx.softmax(x)[0]))\nrlx.tree.map(f, [rlx.asarray(1)])\n"
                      "rlx.load_safetensors('a')['w'].shape\nrlx.nn.Linear\n")  # fmt: skip
    path = os.path.dirname(os.path.dirname(rlx.__file__))
    checked = subprocess.run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(source)], capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    if "error" not in checked.stdout:
        pytest.skip(f"pyright does not run here: {checked.stderr[-200:]}")  # it is a program of node
    lines = sorted({int(line.split(":")[1]) for line in checked.stdout.splitlines() if " - error:" in line})
    assert lines == [2, 3], checked.stdout
