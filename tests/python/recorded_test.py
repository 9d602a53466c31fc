"""Expressions that JAX computed, as they were written for JAX: `jax`, `jnp` and `lax` are this package. Values, and derivatives in both modes."""
import json
import os
import types

import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

FOLDER = os.path.join(os.environ["RLX_FIXTURES"], "jax")
with open(os.path.join(FOLDER, "cases.json"), encoding="utf-8") as file:
    RECORDED = json.load(file)

# Functions under the names of jax.lax and jax.nn that rlx has under the same names, or others.
lax = types.SimpleNamespace(
    concatenate=lambda xs, axis: jnp.concatenate(xs, axis), rsqrt=jnp.rsqrt, top_k=rlx.top_k, switch=rlx.switch, scan=rlx.scan,
    while_loop=rlx.while_loop, fori_loop=rlx.fori_loop, associative_scan=rlx.associative_scan,
    dynamic_slice=lambda x, starts, sizes: rlx.dynamic_slice(x, list(starts), sizes, wrap_negative=True),
    dynamic_update_slice=lambda x, update, starts: rlx.dynamic_update(x, update, list(starts), wrap_negative=True),
)  # fmt: skip
NAMES = {
    "jnp": jnp,
    "lax": lax,
    "jax": types.SimpleNamespace(vmap=rlx.vmap, hessian=rlx.hessian, checkpoint=rlx.checkpoint, nn=rlx.ops, lax=lax),
}

CASES = ["concatenate", "repeat", "stack", "sum_i8_to_i32", "norms", "sort_descending_nan", "top_k_nan", "take_along_axis", "scatter_min_ties_values",
         "embedding", "dynamic_slice_-5_99_2", "dynamic_update_slice_3_2_1", "layer_norm", "batch_norm_train", "bce_logits", "mlp", "fft_8", "irfft_8",
         "rfft_12", "ifft_7", "fft3", "fft_prime", "slogdet_f32", "slogdet_f64", "while_newton", "while_jvp", "switch_m1", "switch_9", "scan_no_inputs",
         "scan_int_carry", "checkpoint", "vmap_dynamic_slice", "vmap_scatter_add", "vmap_scan", "vmap_cholesky_solve", "hessian",
         "grad_of_softmax_ce_hessian", "prod_pool_f32", "prod_pool_f64", "associative_scan_f32", "associative_scan_f64", "associative_scan_reverse_f64",
         "scatter_mul_meeting_f32", "scatter_mul_meeting_f64", "svdvals_f32", "svdvals_f64", "matrix_power_f64", "qr_5x3_f64", "qr_4x4_f64", "qr_wide_c64",
         "qr_complete_f32", "eigh_phase_f64", "svd_5x3_f64", "svd_3x4_f64", "pinv_5x3_f64", "pinv_3x4_f64", "pinv_5x3_c64"]  # fmt: skip


def expression(entry):
    text = entry["expr"]
    for name in ("jnp.int32(", "jnp.float32("):  # types are no functions here
        text = text.replace(name, f"jnp.asarray(dtype={name[:-1]}, value=")
    return eval(text, NAMES)


def complex_of(array, recorded_type):
    return array.view(np.complex64)[..., 0] if recorded_type.startswith("c64") else array


def close(seen, wanted, scale=1.0):
    seen = np.asarray(seen)
    assert seen.shape == wanted.shape
    tolerance = 1e-11 if wanted.dtype == np.float64 else 2e-5
    finite = np.abs(wanted[np.isfinite(wanted)])
    largest = max(finite.max(initial=0), 1e-3) * scale
    assert np.allclose(seen, wanted, rtol=tolerance, atol=tolerance * largest, equal_nan=True), (seen, wanted)


@pytest.mark.parametrize("name", CASES)
def test_expression(name):
    entry = next(case for case in RECORDED["cases"] if case["name"] == name)
    arrays = rlx.load_safetensors(os.path.join(FOLDER, RECORDED["files"][entry["group"]]))
    array = lambda key, kind, i: complex_of(arrays[f"{name}/{key}"].numpy(), entry[kind][i])  # noqa: E731
    inputs = [rlx.asarray(array(f"in{i}", "in", i)) for i in range(len(entry["in"]))]
    function = expression(entry)

    def flat(*given):
        return rlx.tree.leaves(function(*given))

    wanted = [array(f"out{i}", "out", i) for i in range(len(entry["out"]))]
    for results in (flat(*inputs), rlx.jit(flat)(*inputs)):
        assert len(results) == len(wanted)
        for seen, expected in zip(results, wanted):
            close(seen, expected)
    if "diff" in entry:
        check_derivatives(entry, flat, inputs, array)


def check_derivatives(entry, flat, inputs, array):
    """jvp, vjp and, where it was recorded, the change of the vjp along the tangents."""
    wrt = entry["diff"]
    floats = [i for i, kind in enumerate(entry["out"]) if kind[0] in "fc"]

    def varying(*given):
        arguments = list(inputs)
        for i, value in zip(wrt, given):
            arguments[i] = value
        results = flat(*arguments)
        return [results[i] for i in floats]

    primals = tuple(inputs[i] for i in wrt)
    tangents = tuple(array(f"tan{k}", "in", i) for k, i in enumerate(wrt))
    cotangents = [array(f"ct{k}", "out", i) for k, i in enumerate(floats)]
    pull_back = lambda *given: rlx.vjp(varying, *given)[1](cotangents)  # noqa: E731
    for k, (seen, i) in enumerate(zip(rlx.jvp(varying, primals, tangents)[1], floats)):
        close(seen, array(f"jvp{k}", "out", i))
    for k, (seen, i) in enumerate(zip(pull_back(*primals), wrt)):
        close(seen, array(f"vjp{k}", "in", i))
    if entry.get("hvp"):
        for k, (seen, i) in enumerate(zip(rlx.jvp(pull_back, primals, tangents)[1], wrt)):
            close(seen, array(f"hvp{k}", "in", i), 4)
