#!/usr/bin/env python3
"""Writes what transformers' activations are of some numbers, in f64: tests/fixtures/hf_options/activations.json.

    pip install transformers==5.24.0 torch
    scripts/hf_activations.py tests/fixtures/hf_options/activations.json
"""
import json
import sys
from pathlib import Path

import torch
from transformers.activations import ACT2CLS, ACT2FN

WITH_WEIGHTS = {"prelu", "xielu"}


def main():
    x = torch.tensor([-30, -11, -4, -2.5, -1, -0.3, 0, 0.2, 1, 2.5, 4, 7, 11, 30], dtype=torch.float64)
    values = {"x": x} | {name: ACT2FN[name](x) for name in sorted(ACT2CLS) if name not in WITH_WEIGHTS}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(y.tolist())}" for name, y in values.items())
    Path(sys.argv[1]).write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
