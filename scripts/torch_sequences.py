#!/usr/bin/env python3
"""Writes what PyTorch, SciPy and transformers compute of sequences: tests/fixtures/torch/sequences.{json,safetensors}, in the form of
backward.json: for each case its operands, results, cotangents of the results and gradients of the operands.

    pip install torch==2.13.0 scipy==1.17.1 transformers==5.23.0 safetensors
    scripts/torch_sequences.py tests/fixtures/torch
"""
import json
import sys
from pathlib import Path

import numpy as np
import scipy.signal
import torch
from safetensors.torch import save_file
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import WhisperFeatureExtractor
from transformers.audio_utils import mel_filter_bank

cases, tensors = [], {}
random = torch.Generator().manual_seed(21)


def uniform(*shape, low=-1.0, high=1.0):
    """Numbers of f32, held in f64."""
    return (torch.rand(shape, generator=random, dtype=torch.float32) * (high - low) + low).double()


def described(t):
    return f"{ {torch.float32: 'f32', torch.float64: 'f64', torch.int32: 'i32', torch.int64: 'i64'}[t.dtype]}{list(t.shape)}".replace(" ", "")


def stored(t):
    return t.detach().float().contiguous() if t.is_floating_point() else t.contiguous()


def record(name, operands, params, function, grad=None):
    """`function` of the operands in f64; the results' cotangents are drawn, and all is stored as f32."""
    operands = {key: t.clone().requires_grad_() if t.is_floating_point() else t for key, t in operands.items()}
    results = function(operands)
    grad = [key for key, t in operands.items() if t.is_floating_point()] if grad is None else grad
    cotangents = [uniform(*y.shape) if y.is_floating_point() else None for y in results]
    pairs = [(y, dy) for y, dy in zip(results, cotangents) if dy is not None]
    if grad:
        slopes = torch.autograd.grad([y for y, _ in pairs], [operands[key] for key in grad], [dy for _, dy in pairs])
        tensors.update({f"{name}/grad/{key}": stored(slope) for key, slope in zip(grad, slopes)})
        tensors.update({f"{name}/ct{i}": stored(dy) for i, dy in enumerate(cotangents) if dy is not None})
    tensors.update({f"{name}/in/{key}": stored(t) for key, t in operands.items()})
    tensors.update({f"{name}/out{i}": stored(y) for i, y in enumerate(results)})
    cases.append({
        "name": name, "in": {key: described(stored(t)) for key, t in operands.items()}, "out": [described(stored(y)) for y in results],
        "grad": grad, "params": params
    })


def recurrent(name, kind, layers, bidirectional, bias, lengths, states, **options):
    """x (N, T, C); the weights have torch's names."""
    steps, features, hidden = 6, 3, 4
    module = getattr(torch.nn, kind)(features, hidden, layers, bias=bias, batch_first=True, bidirectional=bidirectional, **options).double()
    names = [key for key, _ in module.named_parameters()]
    batch = len(lengths) if lengths else 2
    runs = layers * (2 if bidirectional else 1)
    operands = {"x": uniform(batch, steps, features)}
    if lengths:
        operands["lengths"] = torch.tensor(lengths)
    for state in ("h0", "c0")[:states]:
        operands[state] = uniform(runs, batch, hidden)
    params = {"bidirectional": bidirectional, "layers": layers}
    operands |= {key: uniform(*p.shape, low=-0.7, high=0.7) for key, p in module.named_parameters()}

    def function(x):
        given = (x["h0"], x["c0"]) if states == 2 else x.get("h0")
        sequence = pack_padded_sequence(x["x"], x["lengths"], batch_first=True, enforce_sorted=False) if lengths else x["x"]
        y, last = torch.func.functional_call(module, {key: x[key] for key in names}, (sequence, given))
        if lengths:
            y, _ = pad_packed_sequence(y, batch_first=True, total_length=steps)
        return [y, *(last if isinstance(last, tuple) else (last,))]

    record(name, operands, params, function)


def spectrum(name, samples, n_fft, hop, window, **options):
    """The transform, its real and imaginary parts side by side, and the signal that it is turned into again."""
    operands = {"x": uniform(2, samples)}
    if window is not None:
        operands["window"] = window
    kept = options.pop("length", None)

    def function(x):
        settings = dict(n_fft=n_fft, hop_length=hop, win_length=len(window) if window is not None else None, window=x.get("window"), **options)
        z = torch.stft(x["x"], return_complex=True, **settings)
        back = torch.istft(z * (1 + 0.5j) if options.get("onesided", True) else z, length=kept, **settings)
        return [torch.view_as_real(z), back]

    record(name, operands, {"n_fft": n_fft, "hop": hop, "length": kept, **options}, function)


def mel(name, sample_rate, n_fft, mels, low, high, scale, norm):
    bank = mel_filter_bank(n_fft // 2 + 1, mels, low, high, sample_rate, norm, scale).T
    params = {"rate": sample_rate, "n_fft": n_fft, "mels": mels, "low": low, "high": high, "htk": scale == "htk", "equal_area": norm == "slaney"}
    record(name, {"x": torch.zeros(1, dtype=torch.float64)}, params, lambda _: [torch.from_numpy(bank)], [])


def whisper(name):
    """A second through Whisper's feature extractor: its first 40 frames."""
    extractor = WhisperFeatureExtractor(feature_size=80, chunk_length=1)
    t = np.arange(16000) / 16000
    x = torch.from_numpy(np.sin(2 * np.pi * 440 * t * (1 + t))).float() * 0.5 + 0.1 * uniform(16000).float()
    features = extractor(x.numpy(), sampling_rate=16000, return_tensors="np")["input_features"][0]
    record(name, {"x": x.double()}, {}, lambda _: [torch.from_numpy(features[:, :40]).double()], [])


def welch(name, n_fft, k):
    x, window = uniform(2, 96), torch.hann_window(n_fft, dtype=torch.float32).double()
    _, power = scipy.signal.welch(x.numpy(), 1.0, window=window.numpy(), nperseg=n_fft, noverlap=n_fft // 2, detrend=False)
    power *= float((window**2).sum())
    found = torch.topk(torch.from_numpy(power), k)
    record(name, {"x": x, "window": window}, {"n_fft": n_fft, "k": k}, lambda _: [found.values, found.indices.int()], [])


def main():
    recurrent("lstm_packed", "LSTM", 2, True, True, [4, 6, 1], 2)
    recurrent("lstm_plain", "LSTM", 1, False, False, None, 0)
    recurrent("gru_packed", "GRU", 2, True, True, [4, 6, 1], 1)
    recurrent("gru_plain", "GRU", 2, False, False, None, 0)
    recurrent("rnn_packed", "RNN", 2, True, True, [3, 1, 6], 1)
    recurrent("rnn_relu", "RNN", 2, False, True, [6, 2], 1, nonlinearity="relu")
    hann = torch.hann_window(16, dtype=torch.float32).double()
    spectrum("stft_centered", 50, 16, 4, hann, center=True, normalized=False, onesided=True)
    spectrum("stft_short_window", 61, 16, 3, torch.hamming_window(10, dtype=torch.float32).double(), center=True, normalized=True, onesided=True, length=55)
    spectrum("stft_from_the_start", 45, 15, 5, torch.hamming_window(15, dtype=torch.float32).double(), center=False, normalized=False, onesided=True)
    spectrum("stft_twosided", 40, 12, 6, None, center=True, normalized=True, onesided=False, length=50)
    mel("mel_slaney", 16000, 400, 80, 0.0, 8000.0, "slaney", "slaney")
    mel("mel_htk", 22050, 512, 20, 50.0, 6000.0, "htk", None)
    whisper("log_mel_whisper")
    welch("welch_peaks", 16, 4)
    welch("welch_peaks_odd", 15, 3)
    folder = Path(sys.argv[1])
    save_file(tensors, folder / "sequences.safetensors")
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    (folder / "sequences.json").write_text(f'{{\n "made_by": "torch {torch.__version__.split("+")[0]}",\n "cases": [\n{lines}\n ]\n}}\n')


if __name__ == "__main__":
    main()
