"""Encoding in batches of fixed shapes compared with batches as they come: speed, and changed vectors.

    python -m benchmarks.speed.encode DATA [--documents 300] [--precisions fp32 bf16] [--chunk 512]

DATA is a collection in BEIR layout. The embedded MiniLM's pooled vectors. "As they come" are batches of up to
4096 positions, as wide as their longest text. Seconds are those of the processor, so that other programs
count little. "Changed" are the texts that have another vector when all are encoded backwards, in
chunks of 7; "by" is the largest difference of a component.
"""

import time
from itertools import islice

import numpy as np
import torch
from benchmarks.common import parser_of

from counterpoint.data import open_collection
from counterpoint.encode import Encoder, Mean, Transformer
from counterpoint.encode.batching import ShapedBatch, shaped_batches, token_batches
from counterpoint.memory import keep_freed_memory


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("data")
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--chunk", type=int, default=512, help="texts encoded at a time")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    parser.add_argument("--budgets", nargs="+", type=int, default=[1, 512, 1024])
    options = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    encoder = Encoder(Transformer("minilm"), {"mean": Mean(normalise=True)}).setup().eval()
    texts = [d.full_text for d in islice(open_collection(options.data).documents(), options.documents)]
    rows = encoder.rows(texts, "document")
    print(f"{len(rows)} documents, {np.mean([len(row) for row in rows]):.0f} positions on average")
    print(f"{'precision':10}{'batches':18}{'docs / CPU s':>13}{'changed':>9}{'by':>9}")
    systems = {"as they come": as_they_come}
    systems |= {f"fixed, {b}" if b > 1 else "each alone": fixed(b) for b in options.budgets}
    for precision in options.precisions:
        for name, batches in systems.items():
            encode(encoder, rows[:8], batches, precision, options.chunk)
            started = time.process_time()
            whole = encode(encoder, rows, batches, precision, options.chunk)
            seconds = time.process_time() - started
            other = encode(encoder, rows[::-1], batches, precision, 7)[::-1]
            apart = np.abs(whole - other).max(1)
            changed = f"{(apart > 0).sum():>9}{apart.max():>9.0e}"
            print(f"{precision:10}{name:18}{len(rows) / seconds:>13.1f}{changed}", flush=True)


def as_they_come(lengths):
    return [
        ShapedBatch(batch, len(batch), max(lengths[at] for at in batch))
        for batch in token_batches(lengths, 4096)
    ]


def fixed(budget):
    return lambda lengths: shaped_batches(lengths, budget, 512)


def encode(encoder, rows, batches, precision, chunk):
    """The mean state of every text."""
    found = np.zeros((len(rows), encoder.sets["mean"]), np.float32)
    empty = encoder.rows([""], "document")[0]
    for start in range(0, len(rows), chunk):
        some = rows[start : start + chunk]
        for batch in batches([len(row) for row in some]):
            filled = [some[at] for at in batch.texts] + [empty] * (batch.rows - len(batch.texts))
            tokens = encoder.pad(filled, "document", batch.width)
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                made = encoder(tokens)["mean"].values[:, 0]
            found[start + np.array(batch.texts)] = made[: len(batch.texts)].numpy()
    return found


if __name__ == "__main__":
    main()
