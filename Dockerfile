# The HTTP server with the embedded model, on CPU. docs/serve.md says how to run it.

FROM python:3.12-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
COPY recipes recipes
# The versions of constraints.txt. A CPU build of torch is preferred to the one of PyPI, which brings CUDA.
RUN python -m venv /opt/counterpoint \
    && /opt/counterpoint/bin/pip install --no-cache-dir --constraint constraints.txt \
        --extra-index-url https://download.pytorch.org/whl/cpu '.[minilm,serve]'

FROM python:3.12-slim-bookworm
COPY --from=build /opt/counterpoint /opt/counterpoint
# numba keeps compiled kernels in its cache; without a folder that can be written, it refuses to compile.
ENV PATH=/opt/counterpoint/bin:$PATH \
    NUMBA_CACHE_DIR=/var/cache/counterpoint \
    COUNTERPOINT_HOST=0.0.0.0 \
    COUNTERPOINT_PORT=8000
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin counterpoint \
    && install --directory --owner=counterpoint --group=counterpoint /indexes /var/cache/counterpoint
USER 10001:10001
WORKDIR /indexes
VOLUME /indexes
EXPOSE 8000
# SIGTERM: the server finishes what it accepted. Give it more time than COUNTERPOINT_SECONDS (docker stop -t 60).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ['COUNTERPOINT_PORT']}/healthz\", timeout=4)"]
# The image has no keys, and the server does not listen on 0.0.0.0 without: give COUNTERPOINT_READ_KEYS and
# COUNTERPOINT_WRITE_KEYS to `docker run`, and the indexes as arguments.
ENTRYPOINT ["counterpoint", "serve"]
