"""The simplest server around an open index, to compare with `counterpoint serve`: FastAPI and no more.

python serve_plain.py INDEX PORT
"""

import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

import counterpoint as cp

app = FastAPI()
notes = cp.open(sys.argv[1])


class Body(BaseModel):
    query: str
    k: int = 10


@app.post("/search")
def search(body: Body) -> dict:
    return notes.search(body.query, body.k).to_dict()


@app.get("/readyz")
def ready() -> None:
    notes.search("ready")


uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
