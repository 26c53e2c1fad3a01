"""Where a new CITADEL router begins: how many tokens have their own key, and what its bias decides.

    python -m benchmarks.papers.router_start DATA/squad11-dev [--pairs 32] [--biases 0 -5]

A router over the embedded MiniLM, before its first step, on training questions and their paragraphs drawn at
random. For each bias of the decoder: how many keys of a paragraph's router vector are above 0, the loss of
the router and of exact matches among the paragraphs, and what an index would hold.
"""

import random

import torch
from benchmarks.common import parser_of

from counterpoint.encode import BY_GATE, BY_ROUTER, Encoder, Linear, Routed, Router, TextInput, Transformer
from counterpoint.learn import open_training_data
from counterpoint.score import Dot, MaxSim


def loss(scores):
    """The mean of −ln softmax at the diagonal."""
    return torch.nn.functional.cross_entropy(scores, torch.arange(len(scores))).item()


@torch.inference_mode()
def main():
    parser = parser_of(__doc__)
    parser.add_argument("data")
    parser.add_argument("--pairs", type=int, default=32)
    parser.add_argument("--biases", type=float, nargs="+", default=[0.0, -5.0])
    options = parser.parse_args()
    data = open_training_data(options.data)
    drawn = random.Random(1).sample(data.examples, options.pairs)
    torch.manual_seed(1)
    head = Routed(Router(start="new"), projection=Linear(32), normalise=True)
    encoder = Encoder(
        Transformer("minilm"), {"routed": head}, query=TextInput(32), document=TextInput(180)
    ).setup()
    encoder.eval().heads["routed"].router.train()
    asked = encoder.tokens([data.queries[example.query] for example in drawn], "query")
    read = encoder.tokens([data.documents[example.positives[0]] for example in drawn], "document")
    real, states = read.attention[:, 1:], encoder.backbone(read)[:, 1:]
    chosen = head.router(states, real, encoder.backbone.embeddings.weight, 5)
    best = chosen.weights.argmax(-1, keepdim=True)
    own = chosen.keys == read.ids[:, 1:, None]
    first, among = own.gather(-1, best)[real].float().mean(), own.any(-1)[real].float().mean()
    print(f"{int(real.sum())} tokens: own key first {first:.2f}, among five {among:.2f}")
    for bias in options.biases:
        head.router.bias_.fill_(bias)
        q, d = encoder(asked), encoder(read)
        above = (d["routed" + BY_ROUTER].values > 0).sum(2).float().mean().item()
        router = loss(Dot("routed" + BY_ROUTER)(q, d))
        exact = loss(MaxSim("routed", exact=True, floor0=True)(q, d))
        rows, keys = d["routed"].ragged(), d["routed" + BY_GATE].ragged()
        kept, used = len(rows.ids) / len(keys.ids), len(set(rows.ids.tolist()))
        print(
            f"bias {bias:g}: {above:.0f} keys of a router vector above 0, {kept:.2f} of the rows kept,",
            end=" ",
        )
        print(f"{used} keys in use; loss of the router {router:.3f}, of exact matches {exact:.3f}")


if __name__ == "__main__":
    main()
