"""Sources of negatives. Each is a setting of a stage; a new one goes into a file here and `learn.__all__`."""
