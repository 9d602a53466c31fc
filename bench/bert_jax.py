"""The BERT encoder with mean pooling and L2 normalisation in JAX."""
import jax
import jax.numpy as jnp


def sentence_model(config, weights, dtype):
    """A compiled function of input_ids, attention_mask, token_type_ids (B, S) -> embedding (B, width) in f32."""
    heads, width = config["num_attention_heads"], config["hidden_size"]
    params = {name: jnp.asarray(value, dtype) for name, value in weights.items()}

    def linear(p, name, x):
        return x @ p[name + ".weight"].T + p[name + ".bias"]

    def norm(p, name, x):
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        scaled = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return scaled.astype(dtype) * p[name + ".weight"] + p[name + ".bias"]

    def attend(p, name, x, bias):
        split = lambda part: linear(p, name + part, x).reshape(*x.shape[:2], heads, width // heads)  # (B, S, heads, D)
        scores = jnp.einsum("bqhd,bkhd->bhqk", split("query"), split("key")).astype(jnp.float32) * (width // heads) ** -0.5 + bias
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(dtype), split("value")).reshape(x.shape)

    def forward(p, input_ids, attention_mask, token_type_ids):
        table = lambda name: p[f"embeddings.{name}_embeddings.weight"]
        x = table("word")[input_ids] + table("token_type")[token_type_ids] + table("position")[:input_ids.shape[1]]
        x = norm(p, "embeddings.LayerNorm", x)
        bias = jnp.where(attention_mask[:, None, None, :] != 0, 0.0, -jnp.inf)
        for i in range(config["num_hidden_layers"]):
            layer = f"encoder.layer.{i}."
            mixed = linear(p, layer + "attention.output.dense", attend(p, layer + "attention.self.", x, bias))
            x = norm(p, layer + "attention.output.LayerNorm", mixed + x)
            wide = jax.nn.gelu(linear(p, layer + "intermediate.dense", x), approximate=False)
            x = norm(p, layer + "output.LayerNorm", linear(p, layer + "output.dense", wide) + x)
        weight = attention_mask[:, :, None].astype(jnp.float32)
        pooled = (x.astype(jnp.float32) * weight).sum(1) / weight.sum(1).clip(1e-9)
        return pooled / jnp.sqrt((pooled * pooled).sum(1, keepdims=True)).clip(1e-12)

    compiled = jax.jit(forward)
    return lambda inputs: compiled(params, inputs["input_ids"], inputs["attention_mask"], inputs["token_type_ids"])
