"""Measures, text and pictures of `counterpoint diagnose`; one module per question."""
