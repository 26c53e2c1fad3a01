"""Every loss again, pair by pair in Python's own floats, slow and obvious."""

import math


def softmax_loss(positive, others):
    """−ln of the positive's share."""
    top = max([positive, *others])
    return math.log(sum(math.exp(s - top) for s in [positive, *others])) + top - positive


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def contrastive(step, *, temperature=1.0, scale=1.0, negatives="batch", symmetric=False):
    s, t = step.scores.double().tolist(), step.targets
    s = [[x * scale / temperature for x in row] for row in s]
    positive, allowed, own = t.own[:, 0].tolist(), t.allowed.tolist(), t.own.tolist()

    def of_query(i):
        others = [j for j in range(len(s[i])) if allowed[i][j] and j != positive[i]]
        if negatives == "positives":
            others = [j for j in others if j in positive or j in own[i]]
        return softmax_loss(s[i][positive[i]], [s[i][j] for j in others])

    def of_document(i):
        column = positive[i]
        others = [k for k in range(len(s)) if k != i and allowed[k][column] and positive[k] != column]
        return softmax_loss(s[i][column], [s[k][column] for k in others])

    loss = mean(of_query(i) for i in range(len(s)))
    return (loss + mean(of_document(i) for i in range(len(s)))) / 2 if symmetric else loss


def own_negatives(step):
    """For each query the score of its positive and those of its own negatives."""
    s, own, allowed = (
        step.scores.double().tolist(),
        step.targets.own.tolist(),
        step.targets.allowed.tolist(),
    )
    return [
        (s[i][row[0]], [s[i][j] for j in row[1:] if j >= 0 and allowed[i][j]]) for i, row in enumerate(own)
    ]


def negative_log_likelihood(step):
    return mean(softmax_loss(positive, negatives) for positive, negatives in own_negatives(step))


def pairwise(step):
    return mean(
        mean(softmax_loss(positive, [negative]) for negative in negatives) if negatives else 0.0
        for positive, negatives in own_negatives(step)
    )


def pairwise_softmax(step):
    """As the released code has it: 1 − softmax((s₊, s₋))₀ of each pair."""

    def miss(positive, negative):
        top = max(positive, negative)
        shares = [math.exp(positive - top), math.exp(negative - top)]
        return 1 - shares[0] / sum(shares)

    return mean(
        mean(miss(positive, negative) for negative in negatives) if negatives else 0.0
        for positive, negatives in own_negatives(step)
    )


def multi_label_margin(step, margin=1.0):
    s, allowed = step.scores.double().tolist(), step.targets.allowed.tolist()

    def of_query(i, positive):
        among = [j for j in range(len(s[i])) if allowed[i][j]]
        hinges = [max(0.0, margin - s[i][positive] + s[i][j]) for j in among if j != positive]
        return sum(hinges) / len(among)

    return mean(of_query(i, positive) for i, (positive, *_) in enumerate(step.targets.own.tolist()))


def taught(step):
    """For each query (score, teacher's score) of its own documents, None where the teacher has none."""
    s, own, t = (
        step.scores.double().tolist(),
        step.targets.own.tolist(),
        step.targets.teacher.double().tolist(),
    )
    return [
        [None if j < 0 or math.isnan(t[i][at]) else (s[i][j], t[i][at]) for at, j in enumerate(row)]
        for i, row in enumerate(own)
    ]


def margin_mse(step):
    return mean(
        ((row[0][0] - other[0]) - (row[0][1] - other[1])) ** 2
        for row in taught(step)
        if row[0] is not None
        for other in row[1:]
        if other is not None
    )


def kl_divergence(step, *, temperature=1.0):
    def shares(scores):
        top = max(scores)
        whole = sum(math.exp((s - top) / temperature) for s in scores)
        return [math.exp((s - top) / temperature) / whole for s in scores]

    lists = [[pair for pair in row if pair is not None] for row in taught(step)]
    found = []
    for row in lists:
        if len(row) >= 2:
            student, teacher = shares([s for s, _ in row]), shares([t for _, t in row])
            found.append(sum(t * math.log(t / s) for s, t in zip(student, teacher, strict=True)))
    return mean(found)


def cached_contrastive(step, *, scale=1.0):
    """The value, and the gradient with respect to the scores."""
    s, own, cached = step.scores.double().tolist(), step.targets.own.tolist(), step.targets.cached.tolist()
    losses, gradient = [], [[0.0] * len(row) for row in s]
    for i, (positive, drawn, *_) in enumerate(own):
        loss = softmax_loss(scale * s[i][positive], [scale * x for x in cached[i] if x != -math.inf])
        losses.append(loss)
        if drawn >= 0:
            gradient[i][drawn] += scale * (1 - math.exp(-loss)) / len(s)
            gradient[i][positive] -= scale * (1 - math.exp(-loss)) / len(s)
    return mean(losses), gradient


def terms_of(vectors, at):
    """A text's BM25 vector as a dictionary."""
    rows = zip(
        vectors.ids[at].tolist(), vectors.values[at, :, 0].tolist(), vectors.mask[at].tolist(), strict=True
    )
    return {term: value for term, value, there in rows if there}


def bm25(step, i, j):
    q, d = terms_of(step.q["lexical"], i), terms_of(step.d["lexical"], j)
    return sum(value * d[term] for term, value in q.items() if term in d)


def residual_margin(step, xi=1.0, lam=0.1):
    s, own = step.scores.double().tolist(), step.targets.own.tolist()
    allowed = step.targets.allowed.tolist()

    def of_query(i):
        positive = own[i][0]
        negatives = [j for j in own[i][1:] if j >= 0 and allowed[i][j]]
        hinges = []
        for j in negatives:
            margin = xi - lam * (bm25(step, i, positive) - bm25(step, i, j))
            hinges.append(max(0.0, margin - s[i][positive] + s[i][j]))
        return mean(hinges) if hinges else 0.0

    return mean(of_query(i) for i in range(len(own)))


def orthogonality(step, on, signs):
    """`signs(term)` are those of a term, one for each component."""

    def squared_cosine(lexical, semantic):
        k = len(semantic)
        projected = [
            sum(value * signs(term)[c] for term, value in lexical.items()) / k**0.5 for c in range(k)
        ]
        lengths = [math.sqrt(sum(x * x for x in v)) for v in (projected, semantic)]
        if not all(lengths):
            return 0.0
        dot = sum(a * b for a, b in zip(projected, semantic, strict=True))
        return (dot / lengths[0] / lengths[1]) ** 2

    def side(sets):
        semantic = sets[on].values[:, 0].double().tolist()
        return mean(squared_cosine(terms_of(sets["lexical"], i), v) for i, v in enumerate(semantic))

    return side(step.q) + side(step.d)
