"""What a user of the wheel does, and which libraries that loads: see scripts/wheel.sh."""
import os
import sys

os.environ["RLX_CACHE"] = ""  # kernels that were compiled before need no compiler

import numpy as np  # noqa: E402

import rlx  # noqa: E402

loss = lambda w, x: ((x @ w) ** 2).mean()  # noqa: E731
step = rlx.jit(lambda w, x: w - 0.1 * rlx.grad(loss)(w, x))
assert np.allclose(step(rlx.array([1.0, 2.0]), rlx.array([[1.0, 0.0], [0.0, 1.0]])), [0.9, 1.8])

SYSTEM = ("libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "ld-linux", "libpthread.so", "libdl.so", "librt.so", "libutil.so")
with open("/proc/self/maps", encoding="utf-8") as maps:
    loaded = {line.split()[-1] for line in maps if ".so" in line}
assert any("rlx_llvm" in path for path in loaded), loaded
python = (sys.prefix, sys.base_prefix + "/lib/python3", sys.base_prefix + "/lib/libpython3")
outside = sorted(path for path in loaded if not path.startswith(python) and not path.rpartition("/")[2].startswith(SYSTEM))
# Modules of Python itself are linked to libraries of the system.
foreign = [path for path in outside if not any(word in path for word in ("libz.so", "libexpat", "libffi", "libcrypto", "libssl", "libbz2", "liblzma"))]
assert not foreign, foreign
print("wheel: loads nothing from outside")
