"""Thin stacks that compose the constructs, and `build_app`, which makes them of an environment."""

from infra.stacks.app import build_app

__all__ = ["build_app"]
