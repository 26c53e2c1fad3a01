"""Work on several processes and machines, by Ray."""
