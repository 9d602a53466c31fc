"""The BERT encoder with mean pooling and L2 normalisation in plain PyTorch modules, its attention by scaled_dot_product_attention."""
import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, wide = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        self.query, self.key, self.value, self.mix = (nn.Linear(width, width) for _ in range(4))
        self.widen, self.narrow = nn.Linear(width, wide), nn.Linear(wide, width)
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=config["layer_norm_eps"]) for _ in range(2))

    def forward(self, x, keep):
        split = lambda y: y.view(y.shape[0], y.shape[1], self.heads, -1).transpose(1, 2)  # (B, heads, S, D)
        mixed = F.scaled_dot_product_attention(split(self.query(x)), split(self.key(x)), split(self.value(x)), attn_mask=keep)
        x = self.norm1(self.mix(mixed.transpose(1, 2).reshape(x.shape)) + x)
        return self.norm2(self.narrow(F.gelu(self.widen(x))) + x)


class SentenceModel(nn.Module):
    """input_ids, attention_mask, token_type_ids (B, S) -> embedding (B, width) in f32."""

    NAMES = {"attention.self.query": "query", "attention.self.key": "key", "attention.self.value": "value", "attention.output.dense": "mix",
             "intermediate.dense": "widen", "output.dense": "narrow", "attention.output.LayerNorm": "norm1", "output.LayerNorm": "norm2"}

    def __init__(self, config, weights):
        super().__init__()
        width = config["hidden_size"]
        self.words = nn.Embedding(config["vocab_size"], width)
        self.types = nn.Embedding(config["type_vocab_size"], width)
        self.positions = nn.Parameter(torch.empty(config["max_position_embeddings"], width))
        self.norm = nn.LayerNorm(width, eps=config["layer_norm_eps"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        state = {"words.weight": "embeddings.word_embeddings.weight", "types.weight": "embeddings.token_type_embeddings.weight",
                 "positions": "embeddings.position_embeddings.weight"}
        for kind in ("weight", "bias"):
            state[f"norm.{kind}"] = f"embeddings.LayerNorm.{kind}"
            for i in range(config["num_hidden_layers"]):
                state |= {f"layers.{i}.{ours}.{kind}": f"encoder.layer.{i}.{theirs}.{kind}" for theirs, ours in self.NAMES.items()}
        self.load_state_dict({ours: torch.from_numpy(weights[theirs]) for ours, theirs in state.items()})

    def forward(self, input_ids, attention_mask, token_type_ids, padded: bool):
        x = self.norm(self.words(input_ids) + self.types(token_type_ids) + self.positions[:input_ids.shape[1]])
        keep = attention_mask.bool()[:, None, None, :] if padded else None
        for layer in self.layers:
            x = layer(x, keep)
        weight = attention_mask[:, :, None].float()
        pooled = (x.float() * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return F.normalize(pooled, dim=1, eps=1e-12)
