"""Plans the programs of this folder and writes a table beside counts by hand: python compare.py --python PYTHON [--faultline build/faultline] [NAME …]

What is counted by hand is said at each program: tensors that must live at one time. A count is a lower end; operations that run beside each other, libraries' scratch memory and what TensorFlow's rewriting
saves or adds are in neither. Nothing here was compared with a GPU.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIB = 1 << 20


def floats(*shapes):
    """Bytes of tensors of 32 bits."""
    total = 0
    for shape in shapes:
        size = 4
        for side in shape:
            size *= side
        total += size
    return total


def unet(batch, side=128):
    """Of each of the 18 convolutions with normalization the backward pass needs the convolution's result and the ReLU's; of the rest the pooled, upsampled and joined inputs."""
    total, at = 0, side
    for filters in (64, 128, 256, 512, 1024):
        total += 4 * floats((batch, at, at, filters))
        at //= 2
    for filters, at in ((512, 16), (256, 32), (128, 64), (64, 128)):
        total += (4 + 1 + 2) * floats((batch, at, at, filters))
    for filters, at in ((64, 64), (128, 32), (256, 16), (512, 8)):
        total += floats((batch, at, at, filters))
    return total + 3 * 31_042_369 * 4 + floats((batch, side, side, 3))


def bert(batch=16, length=256, width=768, heads=12, depth=12, words=30522):
    tokens = batch * length
    layer = 4 * tokens * (9 * width + 3 * 4 * width) + 3 * 4 * batch * heads * length * length
    weights = words * width * 2 + words + length * width + depth * (12 * width * width + 13 * width) + 2 * width
    return depth * layer + 3 * 4 * weights + 2 * 4 * tokens * words


# name → (bytes, what they are)
BY_HAND = {
    "mnist_convnet": (
        floats((60000, 28, 28, 1)) + floats((60000, 10)) + 3 * 34_826 * 4,
        "the images and labels, which fit() puts on the GPU whole; weights and Adam's slots",
    ),
    "unet_tf_data": (unet(64), "what backward needs, weights and Adam's slots"),
    "resnet50": (
        2 * 25_636_712 * 4 + 64 * 22_200_000 * 4 + floats((256, 224, 224, 3)),
        "weights and momentum, the images, and 22.2 million activations for each (convolutions and normalizations)",
    ),
    "bert_like": (bert(), "what backward needs of each layer, the scores over the words and their gradient, weights and slots"),
    "lstm_reviews": (
        3 * 2_757_761 * 4 + floats((32, 200, 128)) * 2 + 4 * 5 * floats((200, 32, 64)) + 8 * MIB,
        "weights and slots, embedded words, cuDNN's reserve (5 values each) for four layers, its scratch memory once",
    ),
    "dcgan": (
        floats((60000, 28, 28, 1)) + 3 * (2_330_944 + 212_865) * 4 + 256 * 4 * (2 * 12544 + 2 * 6272 + 2 * 12544 + 784 * 2 + 3 * 2 * (12544 + 6272)),
        "the images, which stay on the GPU; both networks' weights and slots; what backward needs of both",
    ),
    "mirrored_adam": (3 * 4 * (1025 * 16384 + 16385 * 16384 + 16385 * 10) + 4 * (16384 * 16384), "weights, two slots, and the largest gradient"),
    "recommender": (
        2 * 4 * 64 * 2_500_000 + 8192 * 4 * (128 + 256 * 2),
        "two tables and Adagrad's slots, a batch's rows",
    ),
    "large_numpy": (floats((4_500_000, 1024)), "the table, which from_tensor_slices puts on the GPU whole"),
    "session_tf1": (
        3 * 4 * (3 * 3 * 3 * 64 + 9 * 64 * 128 + 9 * 128 * 256 + 40960) + 256 * 4 * (32 * 32 * 64 + 16 * 16 * 64 + 16 * 16 * 128 + 8 * 8 * 128 + 8 * 8 * 256) + 256 * 4 * 32 * 32 * 64,
        "weights and slots, the results of convolutions and poolings, the largest gradient",
    ),
    "vae_eager": (
        512 * 4 * (3072 + 16 * 16 * 32 + 8 * 8 * 64 + 8 * 8 * 64 + 16 * 16 * 32 + 3072 * 3) + 4096 * 3072 * 4 * 0,
        "a batch, and what each layer makes of it, once",
    ),
    "mixed_precision": (
        3 * 5_931_722 * 4 + 32 * 15_000_000,
        "weights and slots; 7.5 million activations of 16 bits for each image",
    ),
}  # fmt: skip

parser = argparse.ArgumentParser()
parser.add_argument("names", nargs="*")
parser.add_argument("--gpu", default="T4")
parser.add_argument("--python", default=sys.executable)
parser.add_argument("--faultline", default=str(HERE.parent.parent / "build" / "faultline"))
arguments = parser.parse_args()

print("| program | by hand, MiB | planned at the peak, MiB | needs | verdict | steps | s | s of CPU |")
print("|---|---|---|---|---|---|---|---|")
for name, (by_hand, _) in BY_HAND.items():
    if arguments.names and name not in arguments.names:
        continue
    program = HERE / "programs" / f"{name}.py"
    with tempfile.TemporaryDirectory() as folder:
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [
                arguments.faultline,
                "plan",
                "--gpu",
                arguments.gpu,
                "--no-try",
                "-o",
                "run",
                "--",
                arguments.python,
                program,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        plan = json.loads(Path(folder, "run", "report.json").read_text())["plan"]
        summary = json.loads(next(Path(folder, "run").glob("process-*.json")).read_text())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"| {name} | {by_hand / MIB:,.0f} | {summary['peak_allocated'] / MIB:,.0f} | {plan['needed'] / 2**30:.2f} GiB | {plan['verdict']} | {summary['steps']} | {took:.0f} | {cpu:.0f} |",
        flush=True,
    )
