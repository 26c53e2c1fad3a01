"""faiss over pooled vectors: all looked at, a graph, and lists."""

import numpy as np

from systems import System


def build_flat(files, folder):
    import faiss

    _write(faiss.IndexFlatIP(_dim(files)), files, folder)


def build_hnsw(files, folder):
    import faiss

    index = faiss.IndexHNSWFlat(_dim(files), 16, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 100
    _write(index, files, folder)


def build_lists(files, folder):
    import faiss

    lists = max(1, min(4096, int(4 * files.documents**0.5)))
    _write(faiss.index_factory(_dim(files), f"IVF{lists},SQ8", faiss.METRIC_INNER_PRODUCT), files, folder)


def _write(index, files, folder):
    import faiss

    vectors = np.concatenate(list(files.pooled_chunks()))
    if not index.is_trained:
        index.train(vectors)
    index.add(vectors)
    faiss.write_index(index, str(folder / "pooled.faiss"))


def _dim(files):
    return len(files.queries(1)[0].pooled)


def opened(files, folder, setting="", value=0):
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.read_index(str(folder / "pooled.faiss"))
    if setting:
        faiss.ParameterSpace().set_index_parameter(index, setting, value)

    def ask(query, k):
        return [int(i) for i in index.search(query.pooled[None], k)[1][0] if i >= 0]

    return ask


EF = {f"ef {ef}": {"setting": "efSearch", "value": ef} for ef in (128, 256)}
PROBE = {f"probe {probe}": {"setting": "nprobe", "value": probe} for probe in (16, 64)}
SYSTEMS = {
    "faiss Flat": System("pooled", ("faiss",), build_flat, opened),
    "faiss HNSW16": System("pooled", ("faiss",), build_hnsw, opened, EF),
    "faiss IVF, SQ8": System("pooled", ("faiss",), build_lists, opened, PROBE),
}
