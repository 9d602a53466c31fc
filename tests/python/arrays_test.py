"""Arrays in and out, operators, indexing: NumPy is the oracle."""
import copy
import os
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

DTYPES = [np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_,
          np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_goes_in_and_out(dtype):
    given = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    array = rlx.asarray(given)
    assert array.shape == (2, 3) and np.dtype(array.dtype) == np.dtype(dtype)
    back = array.numpy()
    assert back.dtype == given.dtype and (back == given).all()


def test_memory_is_shared_both_ways():
    given = np.arange(6, dtype=np.float32)
    array = rlx.asarray(given)
    assert np.shares_memory(array.numpy(), given)
    assert not array.numpy().flags.writeable
    assert not np.shares_memory(rlx.array(given).numpy(), given)
    view = array.numpy()
    del array
    assert (view == given).all()


@pytest.mark.parametrize("given", [np.arange(12.0).reshape(3, 4).T, np.arange(10)[::-2], np.arange(4, dtype=">i4"), np.zeros((0, 3)), np.array(2.5),
                                   np.broadcast_to(np.float32(1), (2, 2)), np.frombuffer(b"abcd", np.uint8)])  # fmt: skip
def test_any_layout_is_taken(given):
    assert np.array_equal(rlx.asarray(given).numpy(), given)


def test_objects_are_refused():
    for given in (np.array([object()]), np.array(["a"]), object()):
        with pytest.raises(rlx.Error, match="allowed"):
            rlx.asarray(given)


def test_dlpack_both_ways():
    array = rlx.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert np.array_equal(np.from_dlpack(array), array.numpy())
    given = np.arange(3, dtype=np.int64)
    taken = rlx.from_dlpack(given)
    assert taken.dtype == rlx.int64 and np.shares_memory(taken.numpy(), given)
    with pytest.raises(rlx.Error, match="contiguous .allowed with copy=False"):
        rlx.from_dlpack(given[::2], copy=False)


class Foreign:
    """An array of another library: NumPy's, of which nothing is seen but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("view", [np.s_[:, ::2], np.s_[::-1, 1:], np.s_[..., 0], np.s_[:0, ::2], np.s_[0, 1, 2:]])
def test_dlpack_of_any_layout(view):
    for dtype in (np.bool_, np.int8, np.float16, np.float64, np.complex128):
        given = (np.arange(24).reshape(2, 4, 3) % 5).astype(dtype)[view]
        for taken in (rlx.from_dlpack(Foreign(given)), rlx.asarray(Foreign(given)), rlx.jit(lambda x: x)(Foreign(given))):
            assert taken.dtype.name == rlx.asarray(given).dtype.name and np.array_equal(taken.numpy(), given)


def test_dlpack_copies_any_type():
    for given in (np.array([True, False]), np.array([-0.0, 1.0]), np.array([2**63], np.uint64), np.array([1j])):
        copied = rlx.from_dlpack(Foreign(given), copy=True).numpy()
        assert copied.dtype == given.dtype and copied.tobytes() == given.tobytes() and not np.shares_memory(copied, given)


def test_dlpack_refused_by_a_library_is_its_error():
    class Refusing(np.ndarray):
        def __dlpack__(self, **_):
            raise BufferError("the conjugate bit is set")

    with pytest.raises(BufferError, match="conjugate bit"):
        rlx.from_dlpack(np.arange(3.0).view(Refusing))
    with pytest.raises(rlx.Error, match="from_dlpack: a int .allowed: an array with __dlpack__"):
        rlx.from_dlpack(3)
    capsule = np.arange(3.0).__dlpack__()
    assert np.array_equal(rlx.from_dlpack(capsule), [0, 1, 2])
    with pytest.raises(rlx.Error, match="a capsule that was used before"):
        rlx.from_dlpack(capsule)


def test_devices_that_hold_no_arrays_are_errors():
    makers = {
        "asarray": lambda device: rlx.asarray([1.0], device=device),
        "from_dlpack": lambda device: rlx.from_dlpack(np.ones(2), device=device),
        "full": lambda device: jnp.full(2, 1.0, device=device),
        "zeros": lambda device: jnp.zeros(2, device=device),
        "ones_like": lambda device: jnp.ones_like(np.ones(2), device=device),
        "arange": lambda device: jnp.arange(3, device=device),
        "linspace": lambda device: jnp.linspace(0, 1, 3, device=device),
        "eye": lambda device: jnp.eye(3, device=device),
        "fftfreq": lambda device: jnp.fft.fftfreq(4, device=device),
        "astype": lambda device: jnp.astype(np.ones(2), "float64", device=device),
    }
    for name, make in makers.items():
        assert make("cpu").device == "cpu", name
        with pytest.raises(rlx.Error, match="no device 'cup' for arrays .allowed: cpu."):
            make("cup")


def test_changed_memory_does_not_reach_what_was_noted_down():
    given = np.ones(4, np.float32)
    total = rlx.numpy.add(rlx.array([1.0]), given)
    given[:] = 7
    assert total.tolist() == [2, 2, 2, 2]


def test_python_numbers_take_the_type_of_arrays():
    half, whole = rlx.array([1, 2], dtype="float16"), rlx.array([1, 2])
    assert (half * 2.5).dtype == rlx.float16 and (whole + 1).dtype == rlx.int32 and (whole + 0.5).dtype == rlx.float32
    assert (whole * 1j).dtype == rlx.complex64 and (rlx.array([True]) + 1).dtype == rlx.int32
    assert (2**1.0 - half).dtype == rlx.float16 and (1 / whole).dtype == rlx.float32


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_operators_are_numpys(dtype):
    a, b = np.array([7, -7, 5, -2]).astype(dtype), np.array([2, 2, -3, -2]).astype(dtype)
    x, y = rlx.asarray(a), rlx.asarray(b)
    for operation in ("+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">="):
        for left, right, other in ((x, y, (a, b)), (x, 3, (a, dtype(3))), (3, y, (dtype(3), b))):
            seen = eval(f"left {operation} right", {"left": left, "right": right})
            expected = eval(f"left {operation} right", {"left": other[0], "right": other[1]})
            assert np.allclose(seen.numpy(), expected, rtol=1e-6), (operation, seen, expected)
    assert np.allclose((-x).numpy(), -a) and np.allclose(abs(x).numpy(), abs(a)) and np.allclose((x**2).numpy(), a**2)
    assert isinstance(a + x, rlx.Array)


def test_integers_have_bit_operators():
    a, b = np.array([6, -3, 5]), np.array([3, 2, 1])
    x, y = rlx.asarray(a), rlx.asarray(b)
    for operation in ("&", "|", "^", "<<", ">>"):
        assert (eval(f"x {operation} y").numpy() == eval(f"a {operation} b")).all(), operation
    assert ((~x).numpy() == ~a).all()


INDICES = [0, -1, slice(1, 3), slice(None, None, -1), slice(5, 1, -2), slice(2, 2), (0, 1), (Ellipsis, 0), (None, 1), (1, Ellipsis, None),
           (slice(None), -2, slice(0, 4, 2)), [0, 2], np.array([[0, 1], [2, -1]]), (slice(None), [1, 0]), ([0, 1], [2, 3]), ([0, 1], slice(None), [1, 3]),
           (0, [1, 2], slice(None, None, 2)), (slice(1, None), [0, 2], [1, 1]), (Ellipsis, [0, 3]), (None, [1], None, 2), slice(-100, 100), (2, 3, 4)]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indices_are_numpys(index):
    a = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)
    x = rlx.asarray(a)
    assert np.array_equal(x[index].numpy(), a[index])
    assert np.array_equal(rlx.jit(lambda v: v[index])(a).numpy(), a[index])
    changed = a.copy()
    changed[index] = -1
    assert np.array_equal(x.at[index].set(-1).numpy(), changed)
    added = a.copy()
    np.add.at(added, index, 2)
    assert np.array_equal(x.at[index].add(2).numpy(), added)


def test_changes_of_nothing_give_nothing():
    for shape, index in (((0, 3), ()), ((0, 5), (None, slice(-1, 1, 2))), ((2, 0, 3), (1, ..., 0)), ((0, 3), (slice(None), [0, 2]))):
        x = rlx.asarray(np.zeros(shape, np.float32))
        for change in ("set", "add", "min"):
            assert getattr(x.at[index], change)(1.0).shape == shape
    with pytest.raises(rlx.Error):
        x.at[0:0].add(np.ones((4, 4), np.float32))


def test_masks_choose_elements():
    a = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    x = rlx.asarray(a)
    assert np.array_equal(x[x > 5].numpy(), a[a > 5]) and np.array_equal(x[a[:, 0] > 2].numpy(), a[a[:, 0] > 2])
    with pytest.raises(rlx.Error, match="traced"):
        rlx.jit(lambda v: v[v > 5])(x)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_indices_of_every_type_count_from_the_end_or_are_moved_inside(dtype):
    limits = np.iinfo(dtype)
    for size in (5, 200, 40000):
        x = np.arange(size, dtype=np.float32)
        index = np.array([0, 2, limits.max, limits.max - 1, limits.min, limits.min + 1, *([-1, -2] if limits.min < 0 else [])], dtype)
        wanted = [min(max(i + size if i < 0 else i, 0), size - 1) for i in index.tolist()]
        np.testing.assert_array_equal(rlx.asarray(x)[rlx.asarray(index)], x[wanted])
        np.testing.assert_array_equal(rlx.asarray(x[:, None])[rlx.asarray(index), rlx.asarray(index * 0)], x[wanted])
        np.testing.assert_array_equal(rlx.numpy.take_along_axis(rlx.asarray(x), rlx.asarray(index), 0), x[wanted])


def test_wrong_indices_are_errors():
    x = rlx.asarray(np.zeros((2, 3)))
    for index in ((0, 0, 0), 2, -3, [0.5], (Ellipsis, Ellipsis)):
        with pytest.raises((IndexError, TypeError)):
            x[index]


def test_a_truth_takes_all_or_nothing():
    x = rlx.asarray(np.arange(6).reshape(2, 3))
    for truth in (True, False, np.array(True), rlx.array(False)):
        expected = x.numpy()[bool(truth)]
        assert x[truth].shape == expected.shape and np.array_equal(x[truth].numpy(), expected)


def test_an_array_prints_like_numpy_and_survives_pickling():
    x = rlx.asarray(np.array([[1.5, 2], [3, 4]], np.float32))
    assert repr(x) == "Array([[1.5, 2. ],\n       [3. , 4. ]], dtype=float32)" and str(x) == str(x.numpy())
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert np.array_equal(other.numpy(), x.numpy()) and other.dtype == x.dtype
    assert f"{rlx.array(1.25):.1f}" == "1.2" and int(rlx.array(3)) == 3 and bool(rlx.array(0)) is False
    assert [float(row) for row in rlx.array([1.0, 2.0])] == [1, 2] and len(x) == 2


def test_a_chain_is_computed_as_one_program():
    x = rlx.asarray(np.linspace(0, 1, 1000, dtype=np.float32))
    y = x
    for _ in range(5):
        y = y * 1.5 + 0.5
    expected = x.numpy()
    for _ in range(5):
        expected = expected * np.float32(1.5) + np.float32(0.5)
    assert np.allclose(y.numpy(), expected, rtol=1e-6)


def test_importing_needs_neither_numpy_nor_ml_dtypes():
    code = "import sys, rlx; sys.exit('numpy' in sys.modules or 'ml_dtypes' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


def test_dlpack_copies_where_it_is_asked_to():
    x = rlx.asarray(np.arange(3, dtype=np.float32))
    shared, copied = np.from_dlpack(x, copy=False), np.from_dlpack(x, copy=True)
    assert np.array_equal(shared, copied) and not np.shares_memory(shared, copied) and np.shares_memory(shared, x.numpy())
    assert copied.flags.writeable and not shared.flags.writeable


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, 3_000_000_000, 2**40, -(2**31), -(2**31) - 1, 2**63 - 1])
def test_lists_and_ranges_have_room_for_their_integers(number):
    for made in (rlx.array([number]), rlx.array([[0], [number]])[1], rlx.numpy.arange(number - 1, number + 1)[1:], rlx.numpy.full(1, number)):
        assert made.tolist() == [number]
    assert rlx.array([number]).dtype == rlx.array(number).dtype and rlx.array([]).dtype == rlx.float32


@pytest.mark.parametrize("ends", [(np.float64(2.5),), (np.float32(0.5), 3), (0, 2, np.float32(0.5)), (np.int64(1), 4)])
def test_ranges_of_numpys_numbers(ends):
    assert rlx.numpy.arange(*ends).tolist() == np.arange(*ends).tolist()


@pytest.mark.parametrize("number", [2**31, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
def test_integers_beyond_what_a_double_holds(number):
    zeros = np.zeros(3, np.int64)
    assert np.array_equal(np.asarray(rlx.asarray(zeros) + number), zeros + number)
    assert int(rlx.asarray(zeros).at[1].set(number)[1]) == number
    assert int(rlx.asarray(number)) == number
    unsigned = number % 2**64
    assert int((rlx.asarray(zeros.astype(np.uint64)) + unsigned)[0]) == unsigned


def test_places_beyond_32_bits():
    n = 70_000
    taken = rlx.jit(lambda rows, i, k: rlx.numpy.broadcast_to(rows[:, None], (n, n))[i, k])  # which never is in memory
    assert taken(np.arange(n, dtype=np.float32), np.int32([69_999, 5]), np.int32([7, -2])).tolist() == [69_999, 5]


def test_numbers_have_room_in_the_types_that_they_take():
    x, bytes_ = rlx.array([0, 1, 2]), rlx.array([1], dtype="uint8")
    for broken in (lambda: x + 2**40, lambda: x * 3000000000, lambda: x == 2**32, lambda: x + 10**30, lambda: x & 0xFFFFFFFF,
                   lambda: jnp.maximum(x, 3 * 10**9), lambda: jnp.clip(x, 0, 2**40), lambda: x.at[0].set(2**40), lambda: bytes_ + 2**31,
                   lambda: rlx.array([300], dtype="int8"), lambda: rlx.asarray(-1, dtype="uint8"), lambda: rlx.array([2**40], dtype="int32"),
                   lambda: rlx.random.key(2**70)):  # fmt: skip
        with pytest.raises(rlx.Error, match=r"has no room|allowed: (an integer of )?0\.\.2"):
            broken().numpy()
    assert (bytes_ & -1).numpy() == 1 and (bytes_ + 300).numpy() == 45  # as in JAX: of what i32 has room for the low bits
    assert (rlx.array([1], dtype="uint32") | 0xFFFFFFFF).numpy() == 0xFFFFFFFF and (rlx.array([1], dtype="int64") + 2**40).numpy() == 2**40 + 1
    assert (rlx.array([0], dtype="uint64") + (2**64 - 1)).numpy() == 2**64 - 1 and np.allclose((rlx.array([1.0]) * 10**30).numpy(), 1e30)
    seen = rlx.jit(lambda x, n: x + n)(x, 2**40)
    assert seen.numpy().dtype == np.int64 and np.array_equal(seen.numpy(), x.numpy() + np.int64(2**40))


def test_functions_of_numpy_take_arrays_and_leave_operators_to_them():
    x = rlx.array([0.5, 1.0])
    assert type(np.sin(x)) is np.ndarray and np.array_equal(np.sin(x), np.sin(x.numpy()))
    for y in (np.float32([1, 2]) + x, np.float32(2) * x, np.float32([1, 2]) < x, 2 - x):
        assert isinstance(y, rlx.Array)
    with pytest.raises(rlx.Error):
        rlx.jit(lambda x: np.sin(x))(x)


def test_types_make_arrays():
    for made, wanted in ((jnp.float32(1.5), np.float32(1.5)), (jnp.int8([1, 2]), np.int8([1, 2])), (jnp.int32(), np.int32())):
        assert made.numpy().dtype == wanted.dtype and np.array_equal(made.numpy(), wanted)
    with pytest.raises(rlx.Error, match="no room"):
        jnp.int8(300)
