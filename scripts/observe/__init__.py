"""A tour of the telemetry without an account: `make observe`."""
