"""Benchmarks for the speed goals of docs/performance.md. Run them with `make bench`."""
