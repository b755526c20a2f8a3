"""The speed that docs/performance.md promises, measured. Run it with `make bench`."""
