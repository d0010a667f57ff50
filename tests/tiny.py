"""Write a tiny model with random weights: loads in milliseconds, decodes thousands of tokens per second.

The vocabulary is byte-level: every one of the 256 bytes is a token, a few words are merged, and special tokens follow.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WORDS = ("the", " the", "he", " next", " number", " is", "user", "assistant", "system", " 1", "\n\n")
BEGIN, END, TOOL = "<|begin|>", "<|im_end|>", "<|tool|>"
# Control tokens but for the last two, which are ordinary text to the tokeniser's users, as in Qwen3.
SPECIAL = (BEGIN, "<|im_start|>", END, TOOL, "<think>", "</think>")
LAYERS, WIDTH, HEADS, FORWARD, CONTEXT = 2, 32, 2, 64, 512


def write(
    path: Path,
    template: str | None = CHATML,
    *,
    context: int = CONTEXT,
    architecture: str = "llama",
    window: int = 0,
    add_bos: bool = False,
    templates: dict[str, str] | None = None,
    sampling: dict[str, float] | None = None,
    seed: int = 0,
    endless: bool = False,
) -> Path:
    """The model as a file; `architecture` is llama, or gemma3 with a sliding `window`, or mamba.

    An `endless` model never takes the token that ends an answer while it is greedy.
    """
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FORWARD)
    writer.add_layer_norm_rms_eps(1e-5)
    _add_vocabulary(writer, add_bos)
    if template is not None:
        named = [{"name": name, "template": text} for name, text in (templates or {}).items()]
        writer.add_chat_template([{"name": "default", "template": template}, *named])
    for name, value in (sampling or {}).items():
        writer.add_float32(f"general.sampling.{name}", value)
    tensors = _mamba(writer) if architecture == "mamba" else _transformer(writer, architecture, window)
    random = np.random.default_rng(seed)
    for name, shape, scale in tensors:
        values = random.normal(0, scale, shape) if scale else np.ones(shape)
        if name.endswith("ssm_a"):
            # A state grows without end unless it decays.
            values = -1 - np.abs(values)
        if endless and name == "output.weight":
            values[vocabulary()[0].index(END)] = 0
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def vocabulary() -> tuple[list[str], list[str]]:
    """Tokens and merges as a GGUF spells them: the 256 bytes, the words built up by merges, the special tokens."""
    spell = _byte_letters()
    tokens, merges = list(spell), []
    for word in WORDS:
        letters = "".join(spell[byte] for byte in word.encode())
        for end in range(2, len(letters) + 1):
            if letters[:end] not in tokens:
                tokens.append(letters[:end])
                merges.append(f"{letters[: end - 1]} {letters[end - 1]}")
    return [*tokens, *SPECIAL], merges


def _byte_letters() -> list[str]:
    """GPT-2's spelling: a printable letter for every byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def _add_vocabulary(writer: gguf.GGUFWriter, add_bos: bool) -> None:
    tokens, merges = vocabulary()
    types = [gguf.TokenType.NORMAL] * (len(tokens) - len(SPECIAL))
    types += [gguf.TokenType.CONTROL] * (len(SPECIAL) - 2) + [gguf.TokenType.USER_DEFINED] * 2
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_merges(merges)
    writer.add_token_types(types)
    writer.add_bos_token_id(tokens.index(BEGIN))
    writer.add_eos_token_id(tokens.index(END))
    writer.add_add_bos_token(add_bos)
    writer.add_add_space_prefix(False)


Tensor = tuple[str, tuple[int, ...], float]


def _transformer(writer: gguf.GGUFWriter, architecture: str, window: int) -> list[Tensor]:
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    head, size = WIDTH // HEADS, len(vocabulary()[0])
    writer.add_rope_dimension_count(head)
    tensors: list[Tensor] = [("token_embd.weight", (size, WIDTH), 1.0), ("output_norm.weight", (WIDTH,), 0)]
    tensors.append(("output.weight", (size, WIDTH), 0.5))
    if architecture == "gemma3":
        writer.add_sliding_window(window)
        writer.add_key_length(head)
        writer.add_value_length(head)
    for layer in range(LAYERS):
        block: list[Tensor] = [
            ("attn_norm", (WIDTH,), 0),
            ("attn_q", (WIDTH, WIDTH), 0.3),
            ("attn_k", (head, WIDTH), 0.3),
            ("attn_v", (head, WIDTH), 0.3),
            ("attn_output", (WIDTH, WIDTH), 0.3),
            ("ffn_norm", (WIDTH,), 0),
            ("ffn_gate", (FORWARD, WIDTH), 0.3),
            ("ffn_up", (FORWARD, WIDTH), 0.3),
            ("ffn_down", (WIDTH, FORWARD), 0.3),
        ]
        if architecture == "gemma3":
            block += [("attn_q_norm", (head,), 0), ("attn_k_norm", (head,), 0)]
            block += [("post_attention_norm", (WIDTH,), 0), ("post_ffw_norm", (WIDTH,), 0)]
        tensors += [(f"blk.{layer}.{name}.weight", shape, scale) for name, shape, scale in block]
    return tensors


def _mamba(writer: gguf.GGUFWriter) -> list[Tensor]:
    inner, state, rank, kernel, size = 2 * WIDTH, 4, 2, 4, len(vocabulary()[0])
    writer.add_head_count(0)
    writer.add_ssm_conv_kernel(kernel)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(state)
    writer.add_ssm_time_step_rank(rank)
    tensors: list[Tensor] = [("token_embd.weight", (size, WIDTH), 1.0), ("output_norm.weight", (WIDTH,), 0)]
    tensors.append(("output.weight", (size, WIDTH), 0.5))
    for layer in range(LAYERS):
        block: list[Tensor] = [
            ("attn_norm.weight", (WIDTH,), 0),
            ("ssm_in.weight", (2 * inner, WIDTH), 0.3),
            ("ssm_conv1d.weight", (inner, kernel), 0.3),
            ("ssm_conv1d.bias", (inner,), 0.1),
            ("ssm_x.weight", (rank + 2 * state, inner), 0.3),
            ("ssm_dt.weight", (inner, rank), 0.3),
            ("ssm_dt.bias", (inner,), 0.1),
            ("ssm_a", (inner, state), 0.1),
            ("ssm_d", (inner,), 0),
            ("ssm_out.weight", (WIDTH, inner), 0.3),
        ]
        tensors += [(f"blk.{layer}.{name}", shape, scale) for name, shape, scale in block]
    return tensors
