"""rlx.image. Expected values are those of jax.image 0.10."""
import numpy as np
import pytest

import rlx
from rlx import image

X = np.float32([[1, 2, 4], [-3, 5, 0], [2, 2, -1], [7, 0.5, 3]])
RESIZED = [
    ("nearest", True, [-3.0, -3.0, 5.0, 0.0, 0.0, 7.0, 7.0, 0.5, 3.0, 3.0]),
    ("nearest", False, [-3.0, -3.0, 5.0, 0.0, 0.0, 7.0, 7.0, 0.5, 3.0, 3.0]),
    ("linear", True, [-0.57143, 0.97143, 3.28571, 2.25714, 1.57143, 3.42857, 2.77143, 1.78571, 1.22857, 0.85714]),
    ("linear", False, [-1.0, 0.8, 3.5, 2.6, 2.0, 4.5, 3.2, 1.25, 1.1, 1.0]),
    ("cubic", True, [-1.26782, 0.67656, 3.43182, 2.44031, 1.46531, 3.88687, 3.04932, 1.67149, 0.99305, 0.70045]),
    ("cubic", False, [-1.53607, 0.55795, 3.58824, 2.88499, 2.06992, 5.23641, 3.56782, 1.02941, 0.87335, 1.06104]),
    ("lanczos3", True, [-1.69686, 0.59327, 3.49652, 2.63629, 1.14159, 3.86223, 3.15218, 1.72644, 0.80352, 0.59914]),
    ("lanczos3", False, [-1.7505, 0.51535, 3.61736, 3.2858, 2.09861, 5.84202, 3.81163, 0.80807, 0.59836, 1.37768]),
    ("lanczos5", True, [-1.82251, 0.54392, 3.52742, 2.79741, 0.93034, 3.76665, 3.24543, 1.7513, 0.67121, 0.62201]),
    ("lanczos5", False, [-1.40357, 0.60063, 3.52611, 3.49884, 2.13684, 5.93752, 3.88491, 0.70948, 0.47162, 1.76787]),
    ("area", True, [-1.0, 0.5, 3.5, 2.5, 2.0, 4.5, 3.41667, 1.25, 1.08333, 1.0]),
    ("area", False, [-1.0, 0.5, 3.5, 2.5, 2.0, 4.5, 3.41667, 1.25, 1.08333, 1.0]),
    ("cubic-pytorch", True, [-1.26782, 0.67656, 3.43182, 2.44031, 1.46531, 3.88687, 3.04932, 1.67149, 0.99305, 0.70045]),
    ("cubic-pytorch", False, [-1.97275, 0.68975, 3.78125, 3.1265, 1.93175, 5.35275, 3.42125, 0.96875, 0.6425, 0.90025]),
]  # fmt: skip
MOVED = [
    ("linear", [0, 0, 0, 0, -0.48824, 2.53137, 2.46667, 1, 3.75, 2.08333, 1.25444, 0.93333], [16.5657, -44.277]),
    ("cubic", [0, 0, 0, 0, -0.98986, 2.89585, 2.84181, 0.87287, 4.14118, 2.0092, 0.94528, 0.82048], [21.3177, -37.8603]),
    ("area", [0, 0, 0, 0, -1.3, 3.29, 2.72, 1.1, 4.5, 1.575, 1.15, 1], [-8.0575, -28.1105]),
]


@pytest.mark.parametrize("method,antialias,expected", RESIZED, ids=[f"{case[0]}-{case[1]}" for case in RESIZED])
def test_an_image_gets_another_size(method, antialias, expected):
    function = lambda x: image.resize(x, (2, 5), method, antialias)
    assert np.allclose(np.ravel(function(X)), expected, atol=2e-5)
    assert np.allclose(np.ravel(rlx.jit(rlx.vmap(function))(np.stack([X, X * 2]))[1]), 2 * np.float32(expected), atol=4e-5)
    slope = rlx.grad(lambda x: function(x).sum())(X)  # it is linear
    assert np.isclose(float((slope * X).sum()), sum(expected), atol=1e-4)
    assert np.array_equal(image.resize(X, X.shape, method, antialias), X)


@pytest.mark.parametrize("method,expected,slope", MOVED, ids=[case[0] for case in MOVED])
def test_an_image_is_moved(method, expected, slope):
    function = lambda x, by: image.scale_and_translate(x, (3, 4), (1, 0), np.float32([1.5, 0.6]), by, method)
    by = np.float32([-0.4, 0.7])
    assert np.allclose(np.ravel(function(X, by)), expected, atol=2e-5) and np.allclose(np.ravel(rlx.jit(function)(X, by)), expected, atol=2e-5)
    assert np.allclose(rlx.grad(lambda by: (function(X, by) ** 2).sum())(by), slope, rtol=1e-4)


def test_weights_of_doubles_are_doubles():
    x, n, size = np.array([1.0, 3.0, -2.0, 5.0, 0.3]), 5, 12
    distance = abs((np.arange(size)[:, None] + 0.5) * n / size - 0.5 - np.arange(n))
    weights = np.maximum(0, 1 - distance)
    assert np.allclose(image.resize(x, (size,), "linear"), weights @ x / weights.sum(1), rtol=1e-14, atol=1e-14)


def test_integers_stay_where_elements_are_copied():
    whole = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert image.resize(whole, (3, 2), "nearest").tolist() == [[1, 3], [5, 7], [9, 11]]
    assert image.resize(whole, (3, 2), image.ResizeMethod.LINEAR).dtype == rlx.float32


def test_errors_name_what_is_wrong():
    for call, text in ((lambda: image.resize(X, (2, 2), "soft"), "'soft' .allowed: nearest, "), (lambda: image.resize(X, (2,), "linear"), "shape is .2,."),
                       (lambda: image.scale_and_translate(X, (2, 2), (0,), [1.0], [0.0], "nearest"), "nearest .allowed: all others")):  # fmt: skip
        with pytest.raises(rlx.Error, match=text):
            call()
