"""Documents with metadata, one of them cut into passages, and what a retriever must give of a hit."""

DOCUMENTS = [
    {"id": "whales", "title": "Whales", "text": "Whales are mammals of the sea.", "year": 2019},
    {"id": "sharks", "title": "Sharks", "text": "Sharks are fish of the sea.", "year": 2021},
    {"id": "trains", "text": "Trains leave from platform nine. They reach the sea at noon.", "year": 2024},
]
QUERY = "mammals and fish of the sea"


def plain(answer):
    """Id, text, score and metadata of every hit."""
    return [(hit.id, hit.text, hit.score, metadata(hit)) for hit in answer]


def metadata(hit):
    found = dict(hit.metadata)
    if hit.title:
        found["title"] = hit.title
    if hit.document.parent is not None:
        found |= {"parent": hit.document.parent, "start": hit.document.start}
    return found
