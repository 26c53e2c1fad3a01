"""The command line: one module per command; each imports what it needs only when it runs."""
