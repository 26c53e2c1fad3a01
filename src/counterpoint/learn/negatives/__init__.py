"""Sources of negatives, each a setting of a stage. Add a new one to a file here and to `learn.__all__`."""
