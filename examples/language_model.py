"""A small transformer that learns to write like this package's documentation, letter by letter.

It predicts the next character of the pages in docs/ from the 48 before it: embeddings, two blocks
of causal attention and dense layers, AdamW with a cosine schedule, an average of the parameters. It
prints the loss on held-out text and a sample, and saves a picture of the losses.

Run it with ``python -m examples.language_model``: one to two minutes. The picture needs matplotlib.
"""

import sys
from pathlib import Path

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape import nn, optimizers

HERE = Path(__file__).parent
PICTURE = HERE / "output" / "language_model.png"
CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 48, 64, 4, 2, 32


def load_text():
    """Return training text, held-out text, as integers, and the characters that these stand for."""
    pages = [page.read_text() for page in sorted((HERE.parent / "docs").glob("*.md"))]
    text = "".join(c for c in "".join(pages) if c.isascii() and (c.isprintable() or c == "\n"))
    characters = sorted(set(text))
    numbers = np.searchsorted(characters, list(text))
    cut = int(0.9 * len(numbers))
    return numbers[:cut], numbers[cut:], characters


def make_parameters(n_characters, seed=0):
    """Return the parameters: variables of float32 in dicts and lists."""
    rng = np.random.default_rng(seed)

    def weights(*shape):
        return cytape.Variable(nn.lecun_normal(shape, rng, np.float32))

    def ones():
        return cytape.Variable(np.ones(WIDTH, np.float32))

    blocks = [{"norm": ones(), "qkv": weights(WIDTH, 3 * WIDTH), "out": weights(WIDTH, WIDTH),
               "norm of layers": ones(), "up": weights(WIDTH, 4 * WIDTH),
               "down": weights(4 * WIDTH, WIDTH)} for _ in range(LAYERS)]
    return {"characters": cytape.Variable(rng.normal(0, 0.1, (n_characters, WIDTH)).astype("f4")),
            "places": cytape.Variable(rng.normal(0, 0.1, (CONTEXT, WIDTH)).astype("f4")),
            "blocks": blocks, "norm": ones(), "logits": weights(WIDTH, n_characters)}


def logits_of(parameters, x):
    """Return the logits of the next character at each place of texts, of shape (texts, places)."""
    n, places = x.shape
    h = nn.embedding_lookup(parameters["characters"], x) + parameters["places"][:places]
    for block in parameters["blocks"]:
        heads = cnp.reshape(nn.rms_norm(h, block["norm"]) @ block["qkv"],
                            (n, places, 3, HEADS, WIDTH // HEADS))
        query, key, value = cnp.transpose(heads, (2, 0, 3, 1, 4))
        seen = nn.scaled_dot_product_attention(query, key, value, is_causal=True)
        h = h + cnp.reshape(cnp.transpose(seen, (0, 2, 1, 3)), h.shape) @ block["out"]
        h = h + nn.gelu(nn.rms_norm(h, block["norm of layers"]) @ block["up"],
                        approximate=True) @ block["down"]
    return nn.rms_norm(h, parameters["norm"]) @ parameters["logits"]


def loss_of(parameters, texts):
    """Return the mean cross-entropy of the next characters, in nats."""
    logits = logits_of(parameters, texts[:, :-1])
    return cnp.mean(nn.sparse_softmax_cross_entropy_with_logits(texts[:, 1:], logits))


def samples(numbers, n, rng):
    starts = rng.integers(0, len(numbers) - CONTEXT - 1, n)
    return numbers[starts[:, None] + np.arange(CONTEXT + 1)]


def train(parameters, numbers, steps, seed=0):
    """Return the losses of all steps, and the average of the last parameters."""
    rng, average = np.random.default_rng(seed), optimizers.ParameterAverage(0.98)
    optimizer = optimizers.AdamW(
        optimizers.cosine_schedule(3e-3, steps, final=1e-4, warmup=max(steps // 20, 1)),
        weight_decay=0.1, decay_mask=lambda p: p.ndim > 1, global_clip_norm=1.0)
    step = cytape.function(
        lambda texts: optimizer.minimize(lambda: loss_of(parameters, texts), parameters))
    losses, bar = [], optimizers.progress(range(steps))
    for i in bar:
        losses.append(float(step(samples(numbers, BATCH, rng))))
        average.update(parameters)
        if i % 20 == 19:
            bar.set_postfix(loss=np.mean(losses[-20:]))
    return np.array(losses), average


def write(parameters, characters, start, n, temperature=0.7, seed=0):
    """Return text of n characters that the model writes after a start."""
    rng, written = np.random.default_rng(seed), list(np.searchsorted(characters, list(start)))
    for _ in range(n):
        logits = logits_of(parameters, np.array([written[-CONTEXT:]]))[0, -1].numpy()
        shares = nn.softmax(logits.astype(float) / temperature)
        written.append(rng.choice(len(characters), p=shares))
    return "".join(characters[i] for i in written)


def draw(losses, held_out, path=PICTURE):
    from matplotlib.figure import Figure  # only the picture needs matplotlib

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(losses, color="tab:blue", alpha=0.3, label="one batch")
    width = max(len(losses) // 40, 1)
    means = np.convolve(losses, np.ones(width) / width, "valid")
    axes.plot(np.arange(len(means)) + width - 1, means, color="tab:blue", label="running mean")
    axes.axhline(held_out, color="tab:orange", label="held-out text, averaged parameters")
    axes.set(xlabel="step", ylabel="cross-entropy of a character (nats)")
    axes.legend()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)
    return path


def main(short=False):
    numbers, held_out, characters = load_text()
    parameters = make_parameters(len(characters))
    losses, average = train(parameters, numbers, 30 if short else 1500)
    tests = samples(held_out, 64, np.random.default_rng(1))
    with average.swapped(parameters):
        loss = float(loss_of(parameters, tests))
        text = write(parameters, characters, "The gradient ", 30 if short else 300)
    print(f"\n{text}\n\nloss: {losses[0]:.2f} at first, {loss:.2f} on held-out text")
    if not short:
        print(f"picture: {draw(losses, loss)}")
    return losses, loss


if __name__ == "__main__":
    main("--short" in sys.argv)
