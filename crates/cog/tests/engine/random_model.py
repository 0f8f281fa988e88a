"""Writes a language model with random weights, 0.5 MB in half a second: two layers, and one token for each byte.

Its answers are noise within the grammar that the engine enforces, at thousands of tokens per second. So they show what an engine
enforces and what it does not. One embedding feature is constant: it passes the norms unchanged, so the first column of the output
weights is a bias per token. It favours the characters that end strings, arrays and objects.
"""

import gguf
import numpy

CONTEXT = 32768
WIDTH, HIDDEN, HEADS, LAYERS = 64, 128, 4, 2
SPECIAL = ["<|end|>", "<|turn|>", "<|done|>"]
TEMPLATE = (
    "{% for m in messages %}<|turn|>{{ m.role }}\n{{ m.content }}<|done|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
# Added to the logits of these characters, so that answers end after some hundred tokens and are mostly text.
BIASES = [(b'"]}', 0.30), (b" \t\n\r", -1.5), (b"eE+-", -0.5), (range(128, 256), -1.0)]


def write(path: str) -> None:
    """Writes the model, always the same one."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    add_vocabulary(writer)
    for name, values in weights():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_vocabulary(writer: gguf.GGUFWriter) -> None:
    """One token for each byte, in the alphabet of GPT-2, then three for the chat template."""
    tokens = [*byte_alphabet(), *SPECIAL]
    normal, control = int(gguf.TokenType.NORMAL), int(gguf.TokenType.CONTROL)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([normal] * 256 + [control] * len(SPECIAL))
    writer.add_token_merges(["e r"])  # the format needs one; there is no token for it
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(258)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def byte_alphabet() -> list[str]:
    """The printable characters stand for themselves, and characters from 256 on for the other bytes."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def weights():
    """The tensors, small and normally distributed."""
    random = numpy.random.default_rng(7)

    def matrix(rows: int, columns: int = WIDTH) -> numpy.ndarray:
        return (random.standard_normal((rows, columns)) * 0.05).astype(numpy.float32)

    vocabulary = 256 + len(SPECIAL)
    embedding, output = matrix(vocabulary), matrix(vocabulary) * 4
    embedding[:, 0] = 4.0
    output[:, 0] = 0.0
    for characters, bias in BIASES:
        output[list(characters), 0] = bias
    ones = numpy.ones(WIDTH, numpy.float32)
    yield "token_embd.weight", embedding
    yield "output_norm.weight", ones
    yield "output.weight", output
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", ones
        yield block + "ffn_norm.weight", ones
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"{block}{name}.weight", matrix(WIDTH)
        yield block + "ffn_gate.weight", matrix(HIDDEN)
        yield block + "ffn_up.weight", matrix(HIDDEN)
        yield block + "ffn_down.weight", matrix(WIDTH, HIDDEN)
