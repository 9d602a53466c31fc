"""Rotations of space, as in scipy.spatial.transform."""
import math
from typing import Any, NamedTuple

from ... import _trees
from ... import numpy as jnp
from ..._core import Error
from ...numpy._base import float_of

_SMALL = 1e-3  # half angles, below which series are used


def _norm(x):
    """Along the last axis, which stays. Not of 0."""
    return jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))


def _product(p, q):
    """Of quaternions, whose last element is the real one: first q, then p."""
    p, q = jnp.broadcast_arrays(p, q)
    vector = p[..., 3:] * q[..., :3] + q[..., 3:] * p[..., :3] + jnp.cross(p[..., :3], q[..., :3])
    return jnp.concatenate([vector, p[..., 3:] * q[..., 3:] - jnp.sum(p[..., :3] * q[..., :3], axis=-1, keepdims=True)], -1)


def _half_angle(quat):
    """The sine and the cosine of half the angle of turning; the latter is not negative."""
    quat = jnp.where(quat[..., 3:] < 0, -quat, quat)
    return quat[..., :3], quat[..., 3:]


def _axes_of(seq):
    extrinsic = seq.islower()
    if not 1 <= len(seq) <= 3 or not (extrinsic or seq.isupper()) or set(seq.lower()) - set("xyz") or any(a == b for a, b in zip(seq, seq[1:])):
        raise Error(f"Rotation: axes {seq!r} (allowed: one to three of xyz, or of XYZ, neighbours not equal)")
    return extrinsic, ["xyz".index(axis) for axis in seq.lower()]


class Rotation:
    """One rotation or several, by quaternions along the last axis: x, y, z, w. A container of these."""

    def __init__(self, quat):
        self.quat = quat

    def __repr__(self):
        return f"Rotation(quat={self.quat!r})"

    @classmethod
    def from_quat(cls, quat):
        """Of quaternions of any length."""
        quat = float_of(quat)
        return cls(quat / _norm(quat))

    @classmethod
    def concatenate(cls, rotations):
        """Those of all, one after the other."""
        return cls(jnp.concatenate([each.quat.reshape(-1, 4) for each in rotations]))

    @classmethod
    def from_matrix(cls, matrix):
        """By the largest of the four elements (Markley 2008)."""
        m = float_of(matrix)
        diagonal = [m[..., i, i] for i in range(3)]
        trace = sum(diagonal)
        rows = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            row = {i: 1 - trace + 2 * m[..., i, i], j: m[..., j, i] + m[..., i, j], k: m[..., k, i] + m[..., i, k], 3: m[..., k, j] - m[..., j, k]}
            rows.append(jnp.stack([row[axis] for axis in range(4)], -1))
        rows.append(jnp.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1], 1 + trace], -1))
        largest = jnp.argmax(jnp.stack([*diagonal, trace], -1), axis=-1)[..., None, None]
        return cls.from_quat(jnp.take_along_axis(jnp.stack(rows, -2), jnp.broadcast_to(largest, (*largest.shape[:-1], 4)), axis=-2)[..., 0, :])

    @classmethod
    def from_rotvec(cls, rotvec, degrees=False):
        """About axes, by angles that are their lengths."""
        v = float_of(rotvec)
        v = v * (math.pi / 180) if degrees else v
        square = jnp.sum(v * v, axis=-1, keepdims=True)
        small = square < 4 * _SMALL**2
        angle = jnp.sqrt(jnp.where(small, 1.0, square))
        scale = jnp.where(small, 0.5 - square / 48 + square * square / 3840, jnp.sin(angle / 2) / angle)
        return cls.from_quat(jnp.concatenate([v * scale, jnp.where(small, 1 - square / 8 + square * square / 384, jnp.cos(angle / 2))], -1))

    @classmethod
    def from_mrp(cls, mrp):
        """Of Rodrigues parameters: axes times the tangent of a quarter of the angle."""
        p = float_of(mrp)
        return cls.from_quat(jnp.concatenate([2 * p, 1 - jnp.sum(p * p, axis=-1, keepdims=True)], -1))

    @classmethod
    def from_euler(cls, seq, angles, degrees=False):
        """Of angles about axes one after the other: fixed ones (xyz), or those turned along (XYZ)."""
        extrinsic, axes = _axes_of(seq)
        angles = float_of(angles)
        angles = angles[..., None] if len(axes) == 1 and (angles.ndim == 0 or angles.shape[-1] != 1) else angles
        if angles.shape[-1] != len(axes):
            raise Error(f"Rotation.from_euler: angles of {angles._type_text()} (allowed: {len(axes)} on the last axis)")
        half = angles * (math.pi / 360 if degrees else 0.5)
        quat = None
        for place, axis in enumerate(axes):
            unit = jnp.asarray([float(axis == k) for k in range(3)], half.dtype)
            one = half[..., place, None]
            turn = jnp.concatenate([jnp.sin(one) * unit, jnp.cos(one)], -1)
            quat = turn if quat is None else _product(turn, quat) if extrinsic else _product(quat, turn)
        return cls(quat)

    @classmethod
    def identity(cls, num=None, dtype=float):
        return cls(jnp.broadcast_to(jnp.asarray([0, 0, 0, 1], dtype), (4,) if num is None else (num, 4)))

    @classmethod
    def random(cls, random_key, num=None):
        """Equally likely ones."""
        from ...random import normal

        return cls.from_quat(normal(random_key, (4,) if num is None else (num, 4)))

    def __getitem__(self, indexer):
        return Rotation(self.quat[indexer])

    def __len__(self):
        return len(self.quat)

    def __mul__(self, other):
        """First the other one, then this one."""
        return Rotation.from_quat(_product(self.quat, other.quat))

    @property
    def single(self):
        return self.quat.ndim == 1

    def apply(self, vectors, inverse=False):
        """The vectors, turned."""
        matrix = self.as_matrix()
        return ((matrix.mT if inverse else matrix) @ float_of(vectors)[..., None])[..., 0]

    def inv(self):
        sign = jnp.asarray([-1, -1, -1, 1], self.quat.dtype)
        return Rotation(self.quat * sign)

    def magnitude(self):
        """The angles, from 0 to pi."""
        sine, cosine = _half_angle(self.quat)
        square = jnp.sum(sine * sine, axis=-1)
        turned = square > 0
        return jnp.where(turned, 2 * jnp.arctan2(jnp.sqrt(jnp.where(turned, square, 1.0)), cosine[..., 0]), 0.0)

    def mean(self, weights=None):
        """That with the least sum of squared distances, by the largest eigenvector."""
        quat = self.quat.reshape(-1, 4)
        weights = jnp.ones_like(quat[:, 0]) if weights is None else float_of(weights)
        return Rotation.from_quat(jnp.linalg.eigh((quat * weights[:, None]).T @ quat).eigenvectors[:, -1])

    def as_quat(self, canonical=False, scalar_first=False):
        """Canonical: of both signs that whose first element other than 0, from the last one on, is positive."""
        q = self.quat
        if canonical:
            x, y, z, w = (q[..., i] for i in range(4))
            zero = lambda *parts: sum(abs(part) for part in parts) == 0  # noqa: E731
            turn = (w < 0) | (zero(w) & (x < 0)) | (zero(w, x) & (y < 0)) | (zero(w, x, y) & (z < 0))
            q = jnp.where(turn[..., None], -q, q)
        return jnp.concatenate([q[..., 3:], q[..., :3]], -1) if scalar_first else q

    def as_matrix(self):
        x, y, z, w = (self.quat[..., i] for i in range(4))
        rows = [[x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w]]  # fmt: skip
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)

    def as_mrp(self):
        sine, cosine = _half_angle(self.quat)
        return sine / (1 + cosine)

    def as_rotvec(self, degrees=False):
        sine, cosine = _half_angle(self.quat)
        square = jnp.sum(sine * sine, axis=-1, keepdims=True)
        small = square < _SMALL**2
        size = jnp.sqrt(jnp.where(small, 1.0, square))
        scale = jnp.where(small, 2 + square / 3 + 3 * square * square / 20, 2 * jnp.arctan2(size, cosine) / size)
        return sine * scale * (180 / math.pi if degrees else 1.0)

    def as_euler(self, seq, degrees=False):
        """The angles for three axes (Bernardes and Viollet 2022); where only the sum or the difference of two of them counts, the last is 0."""
        extrinsic, axes = _axes_of(seq)
        if len(axes) != 3:
            raise Error(f"Rotation.as_euler: axes {seq!r} (allowed: three)")
        i, j, k = axes if extrinsic else axes[::-1]
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = [self.quat[..., axis] for axis in range(4)]
        a, b, c, d = (q[3], q[i], q[j], q[k] * sign) if symmetric else (q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i])
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        total, apart = jnp.arctan2(b, a), jnp.arctan2(d, c)
        low, high = abs(middle) < 1e-7, abs(middle - math.pi) < 1e-7
        apart = apart if extrinsic else -apart
        first = jnp.where(low, 2 * total, jnp.where(high, -2 * apart, total - apart))
        last = jnp.where(low | high, 0.0, total + apart)
        if not symmetric:
            middle = middle - math.pi / 2
            first, last = (first, last * sign) if extrinsic else (first * sign, last)
        angles = jnp.stack([first, middle, last], -1)
        angles = angles - 2 * math.pi * jnp.round(angles / (2 * math.pi))
        return angles * (180 / math.pi) if degrees else angles


_trees.register(Rotation, lambda rotation: ((rotation.quat,), None), lambda _, children: Rotation(*children))


class Slerp(NamedTuple):
    """Rotations between those at `times`, ascending: each turns about one axis with equal speed."""

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times, rotations):
        times = float_of(times)
        if rotations.quat.ndim != 2 or times.shape != rotations.quat.shape[:1] or times.shape[0] < 2:
            raise Error(f"Slerp: times of {times._type_text()} for quaternions of {rotations.quat._type_text()} (allowed: as many, two and more)")
        turns = rotations[:-1].inv() * rotations[1:]
        return cls(times, times[1:] - times[:-1], rotations[:-1], turns.as_rotvec())

    def __call__(self, times):
        times = float_of(times)
        place = jnp.clip(jnp.searchsorted(self.times, times, side="right").astype("int32") - 1, 0, self.timedelta.shape[0] - 1)
        share = (times - jnp.take(self.times, place)) / jnp.take(self.timedelta, place)
        turned = Rotation.from_rotvec(share[..., None] * jnp.take(self.rotvecs, place, axis=0))
        return Rotation(jnp.take(self.rotations.quat, place, axis=0)) * turned


__all__ = ["Rotation", "Slerp"]
