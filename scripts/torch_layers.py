#!/usr/bin/env python3
"""Records what torch computes with layers and optimisers, for tests/python/nn_test.py and optim_test.py.

Usage: python3 scripts/torch_layers.py > tests/fixtures/python/torch_layers.json   (needs torch)
"""
import json
import sys

import torch

torch.manual_seed(3)
torch.set_default_dtype(torch.float64)


def record(module, *inputs, result=lambda y: y):
    """Weights, inputs, the result, and the gradients of the sum of its squares by the weights and the first input."""
    first = inputs[0]
    if first.is_floating_point():
        first.requires_grad_()
    y = result(module(*inputs))
    (y**2).sum().backward()
    entry = {"weights": {k: v.tolist() for k, v in module.state_dict().items()}, "inputs": [x.tolist() for x in inputs], "result": y.tolist()}
    entry["gradients"] = {k: v.grad.tolist() for k, v in module.named_parameters()}
    entry["input_gradient"] = first.grad.tolist() if first.is_floating_point() else None
    return entry


def layers():
    x = torch.randn(2, 5, 4)
    image = torch.randn(2, 4, 6, 5)
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    batch_norm = torch.nn.BatchNorm2d(4)
    cases = {
        "linear": record(torch.nn.Linear(4, 3), x.clone()),
        "conv": record(torch.nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=1, groups=2), image.clone()),
        "conv1d": record(torch.nn.Conv1d(5, 3, 2, dilation=2), x.clone()),
        "layer_norm": record(torch.nn.LayerNorm(4), x.clone()),
        "rms_norm": record(torch.nn.RMSNorm(4, eps=1e-6), x.clone()),
        "group_norm": record(torch.nn.GroupNorm(2, 4), image.clone()),
        "batch_norm": record(batch_norm, image.clone()),
        "embedding": record(torch.nn.Embedding(7, 4), torch.tensor([[1, 0, 6], [3, 3, 2]])),
        "lstm": record(torch.nn.LSTM(4, 3, batch_first=True), x.clone(), result=lambda y: y[0]),
    }
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = attention

        def forward(self, x):
            return self.inner(x, x, x, attn_mask=causal, need_weights=False)[0]

    cases["attention"] = record(Own(), x.clone())
    cases["batch_norm"]["after"] = {k: v.tolist() for k, v in batch_norm.state_dict().items()}
    return cases


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "sgd_decay": lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.05),
    "momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, 0.02),
    "adamw": lambda p: torch.optim.AdamW(p, 0.02, betas=(0.8, 0.99), weight_decay=0.1),
    "clipped": lambda p: torch.optim.SGD(p, 0.1),
    "cosine": lambda p: torch.optim.SGD(p, 0.1),
}


def train(name):
    """A small net, eight steps."""
    torch.manual_seed(5)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x, y = torch.randn(16, 3), torch.randn(16, 1)
    start = {k: v.tolist() for k, v in net.state_dict().items()}
    optimizer, losses = OPTIMIZERS[name](net.parameters()), []
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6) if name == "cosine" else None
    for step in range(6 if schedule else 8):
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        if name == "clipped":
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        optimizer.step()
        if schedule:
            schedule.step()
        losses.append(loss.item())
    return {"start": start, "x": x.tolist(), "y": y.tolist(), "losses": losses, "end": {k: v.tolist() for k, v in net.state_dict().items()}}


json.dump({"torch": torch.__version__, "layers": layers(), "training": {name: train(name) for name in OPTIMIZERS}}, sys.stdout)
