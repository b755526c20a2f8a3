#!/usr/bin/env bash
# Writes locked versions and hashes of all dependencies of this project and of localaws to $1, keeping the versions that $1 already has.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/uv.sh pip compile --quiet --custom-compile-command 'make lock' --universal --python-version 3.11 --all-extras \
    --generate-hashes --no-emit-index-url --no-emit-find-links pyproject.toml localaws/pyproject.toml --output-file "$1"
