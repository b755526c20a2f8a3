"""Pairs of environment files, and what CloudFormation would do between their templates."""
