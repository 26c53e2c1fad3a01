"""Kernels compiled by numba when they are first needed. Nothing here is imported before that."""
