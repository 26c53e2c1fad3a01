"""Serve indexes over HTTP: search, rerank, encode, change and inspect them. Needs the extra `serve`."""
