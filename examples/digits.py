"""Train a small network on real images of handwritten digits, and time its gradients.

Of 1,797 images 360 are kept to test it.

Run it with ``make demo``. It needs matplotlib for the picture it saves.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # time one core against one core; NumPy reads this once

import itertools
import sys
import time
from pathlib import Path

import numpy as np

import cytape
import cytape.numpy as cnp
from bench import reference_ops

HERE = Path(__file__).parent
PICTURE = HERE / "output" / "digits.png"
REQUIRED_ACCURACY = 0.97
REQUIRED_PRECISION = 1e-6


def load_digits(n_test=360, seed=0):
    """Return training images, training labels, test images and test labels."""
    table = np.loadtxt(HERE / "data" / "digits.csv.gz", delimiter=",", dtype=np.int64)
    table = np.random.default_rng(seed).permutation(table)
    images, labels = table[:, :-1] / 16 - 0.3, table[:, -1]  # 0.3 is the mean pixel
    return images[n_test:], labels[n_test:], images[:n_test], labels[:n_test]


def make_parameters(sizes=(64, 64, 10), seed=0):
    """Return a weight and a bias Variable per layer."""
    rng = np.random.default_rng(seed)
    layers = itertools.pairwise(sizes)
    arrays = [(rng.normal(0, n_in**-0.5, (n_in, n_out)), np.zeros(n_out)) for n_in, n_out in layers]
    return [cytape.Variable(array) for layer in arrays for array in layer]


def network(parameters, images):
    w1, b1, w2, b2 = parameters
    return cnp.tanh(images @ w1 + b1) @ w2 + b2


def loss_function(parameters, images, labels):
    logits = network(parameters, images)
    losses = cytape.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return cnp.mean(losses)


def loss_and_gradients(parameters, images, labels):
    with cytape.GradientTape() as tape:
        loss = loss_function(parameters, images, labels)
    return loss, tape.gradient(loss, parameters)


def train(parameters, images, labels, epochs=30, batch_size=32, learning_rate=0.01, seed=0):
    """Yield the mean loss of every epoch; the learning rate falls linearly to zero."""
    rng = np.random.default_rng(seed)
    adam = cytape.optimizers.Adam(learning_rate)
    starts = range(0, len(images), batch_size)
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        losses = []
        adam.learning_rate = learning_rate * (1 - epoch / epochs)
        for start in starts:
            batch = order[start : start + batch_size]
            loss, gradients = loss_and_gradients(parameters, images[batch], labels[batch])
            adam.update(parameters, gradients)
            losses.append(loss.item())
        yield np.mean(losses)


def predict(parameters, images):
    return network(parameters, images).numpy().argmax(axis=1)


def show_progress(text, done):
    if sys.stdout.isatty():
        print(f"\r{text}\x1b[K", end="\n" if done else "", flush=True)
    else:
        print(text)


def draw(losses, accuracies, images, labels, predictions, path):
    """Save the learning curve and 24 predictions, the wrong ones first."""
    from matplotlib.figure import Figure  # only the picture needs matplotlib

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    epochs = range(1, len(losses) + 1)
    axes = left.subplots()
    axes.semilogy(epochs, losses, color="tab:blue")
    axes.set_xlabel("epoch")
    axes.set_ylabel("training loss", color="tab:blue")
    axes = axes.twinx()
    axes.plot(epochs, 100 * np.array(accuracies), color="tab:orange")
    axes.set_ylabel("test accuracy (%)", color="tab:orange")

    wrong = predictions != labels
    shown = np.argsort(~wrong, kind="stable")[:24]
    right.suptitle(f"predictions; {wrong.sum()} of {len(labels)} are wrong (red)")
    for i, axes in zip(shown, right.subplots(4, 6).flat, strict=True):
        axes.imshow(images[i].reshape(8, 8), cmap="gray_r")
        axes.set_axis_off()
        title = f"{predictions[i]}, not {labels[i]}" if wrong[i] else f"{predictions[i]}"
        axes.set_title(title, color="tab:red" if wrong[i] else "black", fontsize=9)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)


def reference_gradients(tensors, images, labels):
    """Do what `loss_and_gradients` does on the plain-Python tape."""
    with reference_ops.ReferenceGradientTape() as tape:
        tape.watch(tensors)
        w1, b1, w2, b2 = tensors
        logits = reference_ops.tanh(images @ w1 + b1) @ w2 + b2
        losses = reference_ops.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = reference_ops.mean(losses)
    return tape.gradient(loss, tensors)


def calls_per_second(*functions, rounds=40, calls=10):
    """Return the best rate of each function; they take turns, so that noise hits all alike."""
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(calls):
                function()
            best[i] = min(best[i], time.perf_counter() - start)
    return [calls / seconds for seconds in best]


def central_difference_error(parameters, images, labels, n_samples=10, step=1e-5, seed=0):
    """Return the largest error of sampled gradients, relative to their array's largest gradient.

    The differences come from plain arrays, on which the loss function is plain NumPy.
    """
    rng = np.random.default_rng(seed)
    _, gradients = loss_and_gradients(parameters, images, labels)
    arrays = [p.numpy().copy() for p in parameters]
    errors = []
    for array, gradient in zip(arrays, gradients, strict=True):
        gradient = gradient.numpy()
        for i in rng.choice(array.size, n_samples, replace=False):
            value = array.flat[i]
            array.flat[i] = value + step
            above = loss_function(arrays, images, labels)
            array.flat[i] = value - step
            below = loss_function(arrays, images, labels)
            array.flat[i] = value
            error = abs((above - below) / (2 * step) - gradient.flat[i])
            errors.append(error / abs(gradient).max())
    return max(errors)


def reference_difference(parameters, images, labels):
    """Return the largest difference between the two tapes' gradients, relative as above."""
    _, actual = loss_and_gradients(parameters, images, labels)
    tensors = [reference_ops.ReferenceTensor(p.numpy()) for p in parameters]
    expected = reference_gradients(tensors, images, labels)
    pairs = zip(actual, expected, strict=True)
    return max(abs(a.numpy() - e).max() / abs(e).max() for a, e in pairs)


def print_speeds(parameters, images, labels):
    tensors = [reference_ops.ReferenceTensor(p.numpy()) for p in parameters]
    print("cytape's tape is compiled; the package has the same tape in plain Python, to check it:")
    print(f"{'gradients per second':22}{'plain-Python tape':>18}{'cytape':>12}{'ratio':>8}")
    for n in 1, 32:
        slow, fast = calls_per_second(
            lambda n=n: reference_gradients(tensors, images[:n], labels[:n]),
            lambda n=n: loss_and_gradients(parameters, images[:n], labels[:n]),
        )
        name = "batch of 1 image" if n == 1 else f"batch of {n} images"
        print(f"{name:22}{slow:18,.0f}{fast:12,.0f}{fast / slow:7.1f}x")


def main():
    images, labels, test_images, test_labels = load_digits()
    parameters = make_parameters()
    losses, accuracies = [], []
    epochs = 30
    start = time.perf_counter()
    for loss in train(parameters, images, labels, epochs):
        predictions = predict(parameters, test_images)
        losses.append(loss)
        accuracies.append(np.mean(predictions == test_labels))
        epoch = len(losses)
        bar = ("#" * (20 * epoch // epochs)).ljust(20, ".")
        show_progress(
            f"[{bar}] epoch {epoch}/{epochs}  loss {loss:.4f}  test accuracy {accuracies[-1]:.1%}",
            done=epoch == epochs,
        )
    seconds = time.perf_counter() - start
    draw(losses, accuracies, test_images, test_labels, predictions, PICTURE)
    error = central_difference_error(parameters, test_images, test_labels)
    difference = reference_difference(parameters, test_images, test_labels)

    print(f"trained on {len(images):,} images, tested on {len(test_images)} others, in "
          f"{seconds:.1f} s; picture: {PICTURE}\n")
    print_speeds(parameters, images, labels)
    print("(much of which is NumPy's work under either tape; where the ops are small, as in\n"
          "the table of docs/performance.md, the tapes differ more)")
    print(f"\n{'relative error of the gradients':44}{'largest':>16}")
    print(f"{'against central differences (40 weights)':44}{error:16.1e}")
    print(f"{'against the plain-Python tape (all weights)':44}{difference:16.1e}")
    if accuracies[-1] < REQUIRED_ACCURACY:
        sys.exit(f"test accuracy {accuracies[-1]:.1%} is below {REQUIRED_ACCURACY:.0%}")
    if max(error, difference) > REQUIRED_PRECISION:
        sys.exit(f"the gradients are off by more than {REQUIRED_PRECISION}")


if __name__ == "__main__":
    main()
