"""rlx.scipy.spatial.transform against SciPy, and derivatives against finite differences."""
import itertools

import numpy as np
import pytest
import scipy.spatial.transform as theirs

import rlx
from rlx.scipy.spatial.transform import Rotation, Slerp

RNG = np.random.default_rng(9)
QUATS = np.concatenate([RNG.normal(size=(12, 4)), np.eye(4), [[1e-5, 2e-5, 0, 1], [1, 1, 0, 0], [0, -1, 0, -1]]])
EXPECTED, MINE = theirs.Rotation.from_quat(QUATS), Rotation.from_quat(QUATS)
SEQUENCES = ["".join(seq) for seq in itertools.product("xyz", repeat=3) if seq[0] != seq[1] and seq[1] != seq[2]]


def same(mine, expected):
    """Whether they are the same rotations."""
    dots = abs((np.asarray(mine.quat) * expected.as_quat()).sum(-1))
    return np.allclose(dots, 1, atol=1e-12)


def test_rotations_as_other_things():
    for run in (lambda f: f, rlx.jit, lambda f: rlx.jit(rlx.vmap(f))):
        assert np.allclose(run(lambda r: r.as_matrix())(MINE), EXPECTED.as_matrix()) and np.allclose(run(lambda r: r.magnitude())(MINE), EXPECTED.magnitude())
        rotvecs = run(lambda r: r.as_rotvec())(MINE)
        assert np.allclose(np.linalg.norm(rotvecs.numpy(), axis=1), EXPECTED.magnitude()) and same(Rotation.from_rotvec(rotvecs), EXPECTED)
        assert same(Rotation.from_mrp(run(lambda r: r.as_mrp())(MINE)), EXPECTED) and same(run(Rotation.from_matrix)(EXPECTED.as_matrix()), EXPECTED)
    assert np.allclose(MINE.as_quat(canonical=True), EXPECTED.as_quat(canonical=True)) and np.allclose(MINE.as_quat(scalar_first=True), EXPECTED.as_quat(scalar_first=True))
    assert np.allclose(MINE[:12].as_rotvec(degrees=True), EXPECTED[:12].as_rotvec(degrees=True)) and np.allclose(MINE[:12].as_mrp(), EXPECTED[:12].as_mrp())
    assert same(Rotation.from_rotvec(QUATS[:, :3] * 40, degrees=True), theirs.Rotation.from_rotvec(QUATS[:, :3] * 40, degrees=True))


@pytest.mark.parametrize("seq", SEQUENCES + [seq.upper() for seq in SEQUENCES])
def test_angles_of_euler(seq):
    angles = RNG.uniform(-3, 3, (6, 3))
    assert same(Rotation.from_euler(seq, angles), theirs.Rotation.from_euler(seq, angles))
    assert np.allclose(MINE[:12].as_euler(seq, degrees=True), EXPECTED[:12].as_euler(seq, degrees=True))
    for degenerate in ([0.3, 0, -0.7], [0.3, np.pi, -0.7], [0.3, np.pi / 2, -0.7], [0.3, -np.pi / 2, -0.7]):
        there = Rotation.from_euler(seq, np.array(degenerate))
        assert np.allclose(Rotation.from_euler(seq, there.as_euler(seq)).as_matrix(), there.as_matrix(), atol=2e-7)


def test_some_axes_and_what_is_none():
    for seq, angles in (("x", 30.0), ("Z", np.array([[30.0], [60]])), ("yz", np.array([[10.0, 20], [40, 70]])), ("XY", np.array([10.0, 20]))):
        assert same(Rotation.from_euler(seq, angles, degrees=True), theirs.Rotation.from_euler(seq, angles, degrees=True))
    for call, text in ((lambda: Rotation.from_euler("xY", [1.0, 2]), "axes 'xY'"), (lambda: Rotation.from_euler("xyz", [1.0, 2]), "3 on the last axis"),
                       (lambda: MINE.as_euler("xy"), "allowed: three"), (lambda: Slerp.init([0.0, 1], MINE), "as many")):  # fmt: skip
        with pytest.raises(rlx.Error, match=text):
            call()


def test_rotations_of_vectors_and_of_each_other():
    vectors, other = RNG.normal(size=(len(QUATS), 3)), theirs.Rotation.from_quat(QUATS[::-1])
    assert np.allclose(MINE.apply(vectors), EXPECTED.apply(vectors)) and np.allclose(MINE.apply(vectors, inverse=True), EXPECTED.apply(vectors, inverse=True))
    assert same(MINE * MINE[::-1], EXPECTED * other) and same(MINE.inv(), EXPECTED.inv()) and same(MINE[3], EXPECTED[3]) and MINE[3].single and len(MINE) == len(QUATS)
    weights = RNG.uniform(0.1, 1, 5)
    assert same(MINE[:5].mean(), EXPECTED[:5].mean()) and same(MINE[:5].mean(weights), EXPECTED[:5].mean(weights))
    assert same(Rotation.concatenate([MINE[:2], MINE[3]]), EXPECTED[[0, 1, 3]]) and np.array_equal(Rotation.identity(2).quat, [[0, 0, 0, 1]] * 2)
    drawn = Rotation.random(rlx.random.key(0), 2000)
    assert np.allclose(np.linalg.norm(drawn.quat.numpy(), axis=1), 1, atol=1e-6) and abs(drawn.as_matrix().numpy().mean(0)).max() < 0.06


def test_rotations_between_others():
    times, at = np.array([0.0, 1, 2.5, 4]), np.array([0, 0.3, 1, 2, 3.9, 4])
    expected = theirs.Slerp(times, EXPECTED[:4])
    slerp = Slerp.init(times, MINE[:4])
    for run in (slerp, rlx.jit(slerp), rlx.vmap(slerp)):
        assert same(run(at), expected(at))
    assert same(slerp(1.7), expected(1.7))


def test_derivatives_of_rotations():
    vector, h = np.array([0.3, -1, 2]), 1e-6
    for at in (np.array([0.4, 1.2, -0.7]), np.zeros(3), np.array([1e-4, 0, 2e-4])):
        turned = lambda v: theirs.Rotation.from_rotvec(v).apply(vector)
        expected = np.stack([(turned(at + h * each) - turned(at - h * each)) / (2 * h) for each in np.eye(3)], -1)
        assert np.allclose(rlx.jit(rlx.jacrev(lambda v: Rotation.from_rotvec(v).apply(vector)))(at), expected, atol=1e-8)
        assert np.allclose(rlx.jacfwd(lambda v: Rotation.from_rotvec(v).as_rotvec())(at), np.eye(3), atol=1e-9)
    assert np.allclose(rlx.jacrev(lambda a: Rotation.from_euler("zyx", a).as_euler("zyx"))(np.array([0.4, 0.3, -0.7])), np.eye(3), atol=1e-9)
