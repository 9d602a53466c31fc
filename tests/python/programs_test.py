"""Program files: executables and compiled functions, opened again without tracing or compiling."""
import pickle
import subprocess
import sys

import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

X = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


def product():
    g = rlx.Graph("product")
    g.output("y", rlx.tanh(g.input("x", (rlx.Dim("B", 8), 3)) @ g.param("w", (3, 4))))
    executable = rlx.Session(threads=1).compile(g)
    executable.set_param("w", W)
    return executable


def test_an_executable_comes_back_without_its_values_or_with_them(tmp_path):
    executable = product()
    for weights in (False, True):
        executable.save(tmp_path / "product.rlxp", weights=weights)
        loaded = rlx.load_program(tmp_path / "product.rlxp", threads=1)
        assert loaded.missing_params() == ([] if weights else ["w"]) and [row[:2] for row in loaded.graph.inputs] == [("x", "input"), ("w", "param")]
        loaded.set_param("w", W)
        for rows in (X, X[:1]):
            assert np.array_equal(loaded.run({"x": rows})["y"], executable.run({"x": rows})["y"])
    assert loaded.dump("lir") == executable.dump("lir")
    again = pickle.loads(pickle.dumps(rlx.load_program(tmp_path / "product.rlxp", threads=1)))  # with the values in the file
    assert np.array_equal(again.run({"x": X})["y"], executable.run({"x": X})["y"])


def test_a_function_is_saved_with_what_it_captured(tmp_path):
    w = rlx.array(W)  # large enough to be no constant of the graph
    table = rlx.array(np.arange(4000, dtype=np.float32))

    @rlx.jit
    def f(x, scale, ids):
        hidden = jnp.tanh(x["rows"] @ w) * scale
        return hidden, {"sum": rlx.lax.fori_loop(0, 3, lambda i, total: total + hidden.sum(), jnp.zeros(())), "taken": rlx.take(table, ids, 0)}

    ids = np.int32([3, 3999])
    f.lower({"rows": X}, 2.0, ids).save(tmp_path / "f.rlxp")
    program = """
import sys, numpy, rlx
file, x, ids, out = sys.argv[1:]
numpy.savez(out, *[r.numpy() for r in rlx.load_program(file, threads=1).run_flat(numpy.load(x), 2.0, numpy.load(ids))])
"""
    np.save(tmp_path / "x.npy", X), np.save(tmp_path / "ids.npy", ids)
    subprocess.run([sys.executable, "-c", program, *(str(tmp_path / name) for name in ("f.rlxp", "x.npy", "ids.npy", "out.npz"))], check=True, timeout=120)
    hidden, more = f({"rows": X}, 2.0, ids)
    seen = list(np.load(tmp_path / "out.npz").values())
    assert np.array_equal(seen[0], hidden) and np.array_equal(seen[1], more["sum"]) and seen[2].tolist() == [3, 3999]


def test_what_cannot_be_saved_or_opened_is_an_error(tmp_path):
    file = tmp_path / "p.rlxp"
    with pytest.raises(rlx.Error, match="donated"):
        rlx.jit(lambda p: p + 1, donate_argnums=0).lower(X).save(file)
    with pytest.raises(rlx.Error, match="a function of this process"):
        rlx.jit(lambda x: rlx.pure_callback(np.sin, rlx.ShapeDtypeStruct((2, 3), "f32"), x)).lower(X).save(file)
    assert not file.exists()
    product().save(file)
    with pytest.raises(rlx.Error, match="'abacus'"):
        rlx.load_program(file, device="abacus")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(rlx.Error, match=r"p\.rlxp: it has \d+ bytes, and was written with"):
        rlx.load_program(file)
    with pytest.raises(rlx.Error, match=r"none\.rlxp"):
        rlx.load_program(tmp_path / "none.rlxp")
