"""Kernels that are compiled when they are first needed, by numba. Nothing here is imported before that."""
