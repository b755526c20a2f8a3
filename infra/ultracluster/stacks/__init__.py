"""Thin stacks that compose the constructs, and `build_app`, which creates them from an environment."""

from ultracluster.stacks.app import build_app

__all__ = ["build_app"]
