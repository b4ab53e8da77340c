"""Several processes on one port and one store: `--workers N`."""
