"""rlx.scipy's signal, ndimage, fft and integrate against SciPy, compiled too, and derivatives against finite differences."""
import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.ndimage
import scipy.signal

import rlx
from rlx.scipy import fft, integrate, ndimage, signal

RNG = np.random.default_rng(4)
X, Y, A, B = RNG.normal(size=33), RNG.normal(size=6), RNG.normal(size=(7, 9)), RNG.normal(size=(4, 3))
LONG = RNG.normal(size=(2, 700))
COMPLEX = X + 1j * np.cos(np.arange(33))


def check(mine, theirs, *args, **options):
    """Equal values, also compiled."""
    expected = theirs(*args, **options)
    for function in (mine, rlx.jit(lambda *args: mine(*args, **options))):
        seen = function(*args, **options) if function is mine else function(*args)
        for one, other in zip(seen if isinstance(seen, tuple) else [seen], expected if isinstance(expected, tuple) else [expected]):
            assert one.shape == np.shape(other) and np.allclose(one, other, rtol=1e-6, atol=1e-9), (options, np.shape(other))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_signals_are_convolved(mode):
    for name in ("convolve", "correlate", "fftconvolve"):
        for x, y in ((X, Y), (Y, X), (A, B), (COMPLEX, Y + 0j), (COMPLEX, Y + 2j)):
            check(getattr(signal, name), getattr(scipy.signal, name), x, y, mode=mode)
    for method in ("direct", "fft"):
        check(signal.convolve, scipy.signal.convolve, A, B, mode=mode, method=method)
    for name in ("convolve2d", "correlate2d"):
        for y in (B, B[:, :2], A[:3, :4] + 1j):
            check(getattr(signal, name), getattr(scipy.signal, name), A, y, mode=mode)
    check(signal.fftconvolve, scipy.signal.fftconvolve, A, A[:, :4], mode=mode, axes=1)
    batch = rlx.vmap(lambda y: signal.convolve(X, y, mode))(np.stack([Y, -Y]))
    assert np.allclose(batch[1], scipy.signal.convolve(X, -Y, mode))


def test_trends_are_taken_away():
    for options in ({}, {"type": "constant"}, {"axis": 0}, {"bp": [3, 5]}, {"bp": 4, "axis": 0}):
        check(signal.detrend, scipy.signal.detrend, A, **options)
    assert signal.detrend(A.astype(np.float32)).dtype == rlx.float32


SPECTRA = [{}, {"nperseg": 64, "noverlap": 48}, {"nperseg": 65, "nfft": 100}, {"window": "hamming", "nperseg": 32}, {"fs": 44.1, "return_onesided": False, "nperseg": 50},
           {"window": scipy.signal.get_window("hann", 40)}]  # fmt: skip


@pytest.mark.parametrize("options", SPECTRA, ids=range(len(SPECTRA)))
def test_spectra_are_those_of_segments(options):
    for more in ({}, {"scaling": "spectrum"}, {"detrend": "linear"}, {"detrend": False}, {"average": "median"}):
        check(signal.welch, scipy.signal.welch, LONG, **options, **more)
        check(signal.csd, scipy.signal.csd, LONG[0], LONG[1], **options, **more)
    given = {"nperseg": len(options["window"]), **options} if not isinstance(options.get("window", ""), str) else options
    for more in ({}, {"boundary": "even"}, {"boundary": "odd"}, {"boundary": None}, {"padded": False}, {"detrend": "constant"}):
        check(signal.stft, scipy.signal.stft, LONG, **given, **more)
    check(signal.welch, scipy.signal.welch, LONG.T, **options, axis=0)
    check(signal.stft, scipy.signal.stft, LONG.T, **given, axis=0)


def test_signals_come_back():
    for options in ({"nperseg": 64}, {"nperseg": 64, "noverlap": 48}, {"nperseg": 50, "window": "hamming"}, {"nperseg": 64, "nfft": 100}):
        z = scipy.signal.stft(LONG, **options)[2]
        check(signal.istft, scipy.signal.istft, z[0], **options)
        check(lambda z, **more: signal.istft(z, **more)[1], lambda z, **more: scipy.signal.istft(z, **more)[1], z, **options)
    z = signal.stft(LONG, nperseg=64)[2]
    assert np.allclose(signal.istft(z, nperseg=64)[1][..., :700], LONG)
    assert np.allclose(signal.istft(np.moveaxis(z.numpy(), 1, 0), nperseg=64, freq_axis=0)[1][..., :700], LONG)


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_images_are_read_between_elements(mode):
    places = RNG.uniform(-9, 15, size=(2, 40))
    theirs = {"wrap": "grid-wrap", "constant": "grid-constant"}.get(mode, mode)
    for order in (0, 1):
        expected = scipy.ndimage.map_coordinates(A, places, order=order, mode=theirs, cval=-1.0)
        function = lambda x, places: ndimage.map_coordinates(x, list(places), order, mode, cval=-1.0)
        assert np.allclose(function(A, places), expected) and np.allclose(rlx.jit(function)(A, places), expected)
    whole = (A * 10).astype(np.int32)
    assert ndimage.map_coordinates(whole, list(places), 1, mode).dtype == rlx.int32


def test_cosine_transforms():
    for norm in (None, "ortho"):
        for name in ("dct", "idct"):
            for options in ({}, {"axis": 0}, {"n": 5}, {"n": 12}):
                check(getattr(fft, name), getattr(scipy.fft, name), A, norm=norm, **options)
        for name in ("dctn", "idctn"):
            for options in ({}, {"axes": [1]}, {"s": [4, 11]}):
                check(getattr(fft, name), getattr(scipy.fft, name), A, norm=norm, **options)
    assert np.allclose(fft.idct(fft.dct(X.astype(np.float32))), X, atol=1e-5) and fft.dct(X.astype(np.float32)).dtype == rlx.float32


def test_areas():
    check(integrate.trapezoid, scipy.integrate.trapezoid, A, axis=0, dx=0.5)
    check(integrate.trapezoid, scipy.integrate.trapezoid, X, np.sort(RNG.normal(size=33)))


def test_derivatives_follow_finite_differences():
    at = RNG.uniform(0, 6, size=(2, 5))
    functions = [(lambda x: signal.convolve(x, Y, "same"), X), (lambda x: signal.fftconvolve(x, x), X), (lambda x: signal.detrend(x) ** 2, X),
                 (lambda x: signal.welch(x, nperseg=16)[1], X), (lambda x: signal.istft(signal.stft(x, nperseg=16)[2] * 2, nperseg=16)[1], X), (fft.dct, X), (fft.idct, X),
                 (lambda x: ndimage.map_coordinates(x, list(at), 1), A), (lambda at: ndimage.map_coordinates(A, list(at), 1, "reflect"), at)]  # fmt: skip
    for function, x in functions:
        weights, v = RNG.normal(size=function(rlx.asarray(x)).shape), RNG.normal(size=x.shape)
        total = lambda x: (function(rlx.asarray(x)) * weights).sum()  # noqa: B023
        slope = (float(total(x + 1e-6 * v)) - float(total(x - 1e-6 * v))) / 2e-6
        assert np.isclose((rlx.grad(total)(x).numpy() * v).sum(), slope, rtol=1e-5) and np.isclose(float(rlx.jvp(total, (x,), (v,))[1]), slope, rtol=1e-5)


def test_errors_name_what_is_wrong():
    for call, text in ((lambda: signal.convolve(X, Y, "half"), "'half' .allowed: full, same, valid"), (lambda: signal.convolve(A, X), "equally many axes"),
                       (lambda: signal.convolve(A, A.T), "the larger along all axes"), (lambda: signal.welch(X, window="soft"), "'soft' .allowed: an array, hann"),
                       (lambda: signal.stft(X, nperseg=8, noverlap=8), "noverlap is 8"), (lambda: ndimage.map_coordinates(A, [X], 1), "one for each axis"),
                       (lambda: fft.dct(X, type=3), "type is 3")):  # fmt: skip
        with pytest.raises(rlx.Error, match=text):
            call()
