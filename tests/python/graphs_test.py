"""Graphs that are built by the members of rlx.Graph; executables, tables, pickles."""
import pickle

import numpy as np
import pytest

import rlx

X = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


def run(graph, inputs, **params):
    executable = rlx.Session(threads=1).compile(graph)
    executable.set_params(params)
    return executable.run(inputs)


def test_a_graph_is_built_by_its_members():
    g = rlx.Graph("net")
    x, w = g.input("x", (rlx.Dim("B", 8), 3)), g.param("w", (3, 4))
    y = g.activation("relu", g.matmul(x, w)) + 1
    g.set_outputs({"y": y, "narrow": g.narrow(y, 1, 1, 2), "chosen": g.where_(g.compare("gt", y, 1.5), y, 0.0)})
    expected = np.maximum(X @ W, 0) + 1
    out = run(g, {"x": X}, w=W)
    assert np.allclose(out["y"], expected, atol=1e-5) and np.allclose(out["narrow"], expected[:, 1:3], atol=1e-5)
    assert np.allclose(out["chosen"], np.where(expected > 1.5, expected, 0), atol=1e-5)
    assert pickle.loads(pickle.dumps(g)) == g and [row[:2] for row in g.inputs] == [("x", "input"), ("w", "param")]


def test_members_have_the_meaning_of_functions():
    g = rlx.Graph()
    x, w, a, b = g.input("x", (2, 3)), g.param("w", (3, 4)), g.param("a", (3, 1)), g.param("b", (1, 4))
    m = g.param("m", (3, 3))
    values = {"lora": g.lora_matmul(x, w, a, b, 0.5), "norm": g.layer_norm(x), "rms": g.rms_norm(x), "sum": g.reduce("mean", x, [1]), "cumsum": g.cumsum(x),
              "both": g.concat([x, x], 1), "rows": g.gather(w, g.constant([2, 0])), "solved": g.dense_solve(m, g.constant(W)), "soft": g.softmax(x, 1)}  # fmt: skip
    g.set_outputs(values)
    a, b, m = np.float32([[1], [2], [3]]), np.float32([[1, 0, 2, 0]]), np.eye(3, dtype=np.float32) * 2
    out = run(g, {"x": X}, w=W, a=a, b=b, m=m)
    normed = X - X.mean(1, keepdims=True)
    expected = {"lora": X @ W + 0.5 * (X @ a) @ b, "norm": normed / np.sqrt(X.var(1, keepdims=True) + 1e-5), "rms": X / np.sqrt((X**2).mean(1, keepdims=True) + 1e-5),
                "sum": X.mean(1), "cumsum": X.cumsum(1), "both": np.concatenate([X, X], 1), "rows": W[[2, 0]], "solved": W / 2,
                "soft": np.exp(X) / np.exp(X).sum(1, keepdims=True)}  # fmt: skip
    for name, value in expected.items():
        assert np.allclose(out[name], value, atol=1e-4), name
    for wrong in (lambda: g.compare("near", x, x), lambda: g.reduce("middle", x, [0]), lambda: g.attention_kind(x, x, x, "some")):
        with pytest.raises(rlx.Error, match="allowed: "):
            wrong()


def test_masks_of_attention_have_names():
    q = np.random.default_rng(2).normal(size=(1, 2, 4, 8)).astype(np.float32)
    mask = np.tril(np.ones((4, 4), bool))
    results = {}
    for kind, more in (("none", {}), ("causal", {}), ("custom", {"mask": mask}), ("sliding_window", {"window": 2}), ("bias", {"mask": np.where(mask, 0, -1e9).astype(np.float32)})):
        g = rlx.Graph()
        x = g.input("q", q.shape)
        more = {name: g.constant(value) if name == "mask" else value for name, value in more.items()}
        g.set_outputs([g.attention_kind(x, x, x, kind, **more)])
        results[kind] = run(g, {"q": q})["0"].numpy()
    for same in ("custom", "bias"):
        assert np.allclose(results["causal"], results[same], atol=1e-5)
    assert not np.allclose(results["none"], results["causal"]) and not np.allclose(results["sliding_window"], results["causal"])
    assert np.allclose(results["sliding_window"][:, :, 0], q[:, :, 0], atol=1e-5)


def scalar_graph():
    g = rlx.Graph("loss")
    x, w = g.input("x", (2, 3)), g.param("w", (3, 4))
    g.output("loss", ((x @ w) ** 2.0).sum())
    return g


def test_graphs_of_derivatives():
    g = scalar_graph()
    gradient = 2 * X.T @ (X @ W)
    out = run(g.grad(with_value=True), {"x": X}, w=W)
    assert np.allclose(out["grad_w"], gradient, rtol=1e-4) and np.allclose(out["loss"], ((X @ W) ** 2).sum(), rtol=1e-5)
    v = np.ones_like(W)
    assert np.allclose(run(g.hvp(), {"x": X, "vector_w": v}, w=W)["hvp_w"], 2 * X.T @ (X @ v), rtol=1e-4)
    assert np.allclose(run(g.jvp(), {"x": X, "tangent_w": v}, w=W)["tangent_loss"], (gradient * v).sum(), rtol=1e-4)
    for each in (g.jacfwd(), g.jacrev()):
        assert np.allclose(run(each, {"x": X}, w=W)["jacobian_loss_w"], gradient, rtol=1e-4)
    batch = np.stack([X, 2 * X, -X])
    assert np.allclose(run(g.vmap({"x": 0}, 3), {"x": batch}, w=W)["loss"], [((x @ W) ** 2).sum() for x in batch], rtol=1e-5)


def test_functions_with_rules_of_ones_own():
    def graph(**rules):
        g = rlx.Graph()
        x = g.param("x", (3,))
        g.output("y", g.custom_fn(lambda x: x * x, x, **rules).sum())
        return run(g.grad(), {}, x=X[0])["grad_x"].numpy()

    assert np.allclose(graph(vjp=(lambda x: (x * x, None), lambda kept, dy: (dy * 5.0,))), 5)
    assert np.allclose(graph(jvp=lambda x, dx: (x[0] * x[0], dx[0] * 7.0)), 7)
    with pytest.raises(rlx.Error, match="one of jvp and vjp"):
        graph()


def test_executables_take_bytes_and_lists():
    g = rlx.Graph()
    x, w = g.input("x", (2, 3)), g.param("w", (3, 4))
    g.set_outputs([x @ w, x + 1])
    executable = rlx.Session(threads=1).compile(g)
    executable.set_param_typed("w", W.tobytes(), "f32")
    first, second = executable.run_flat(X)
    assert np.allclose(first, X @ W, atol=1e-5) and np.allclose(second, X + 1)
    with pytest.raises(rlx.Error, match="allowed: x, w"):
        executable.set_param_typed("v", b"", "f32")
    with pytest.raises(rlx.Error, match="1 inputs"):
        executable.run_flat(X, X)


def test_tables_are_read_by_people_and_programs():
    g = scalar_graph()
    executable = rlx.Session(threads=1).compile(g)
    executable.set_param("w", W)
    table = executable.profile({"x": X}, 1)
    assert len(table.columns["seconds"]) == len(table) and "seconds" in repr(table).splitlines()[0] and "linear-gradient" in table._repr_html_()
    assert set(executable.explain().columns) == {"node", "how", "by"}
    dot = g.to_dot()
    assert dot.startswith('digraph "loss" {') and "->" in dot and "output loss" in dot and 'label="w' in dot


def test_sessions_are_pickled_by_their_options():
    session = pickle.loads(pickle.dumps(rlx.Session(threads=1, precision="bf16")))
    assert session.threads == 1 and session.device == rlx.Session().device


def test_a_function_becomes_a_graph():
    weights = np.arange(40, dtype=np.float32)

    def scaled(params, x, power=1, *, shift):
        return {"y": params["w"][0] * x**power + shift, "z": ((rlx.asarray(weights) * x).sum(), 2)}

    x = np.float32([1, 2, 3])
    graph = rlx.make_graph(scaled, static_argnums=2)({"w": [x]}, 2.0, 3, shift=x)
    assert [(name, type_) for name, _, type_ in graph.inputs] == [("params['w'][0]", "f32[3]"), ("x", "f32[]"), ("shift", "f32[3]"), ("captured.0", "f32[40]")]
    assert str(graph).startswith("graph ") and rlx.parse_graph(str(graph)) == graph
    run = rlx.Session().compile(graph).run({"params['w'][0]": x, "x": np.float32(2), "shift": x, "captured.0": weights})
    assert run["out['y']"].tolist() == (x * 9).tolist() and run["out['z'][0]"] == 1560 and run["out['z'][1]"] == 2
    assert "i32[3]" in str(rlx.make_graph(lambda x: x + 1)(np.int32(x)))  # a number has no type of its own
    assert ": f16[3] = mul(" in str(rlx.make_graph(lambda k, x: x * k)(2.0, x.astype(np.float16)))
    assert len(rlx.make_graph(rlx.jit(lambda x: x))(x).inputs) == 1
    with pytest.raises(AttributeError, match="rlx.make_graph gives the graph"):
        rlx.make_jaxpr
