#!/usr/bin/env bash
# Runs the locked uv with pip's package index, because uv does not read pip's configuration.
set -euo pipefail
cd "$(dirname "$0")/.."

settings=$(.venv/bin/python -m pip config list 2>/dev/null || true)
pip_setting() { # value of pip setting $1: environment first, then files; lines look like global.index-url='...'
    sed -nE "s/^(:env:|global|install)\.$1='(.*)'$/\2/p" <<<"$settings" | head -n 1 | sed 's/\\n/ /g; s/^ //'
}
export_setting() { # exports pip setting $2 as uv variable $1, unless that variable is already set
    local value
    value=${!1:-$(pip_setting "$2")}
    if [ -n "$value" ]; then export "$1=$value"; fi
}

export_setting UV_DEFAULT_INDEX index-url
export_setting UV_INDEX extra-index-url
export_setting UV_FIND_LINKS find-links
export_setting SSL_CERT_FILE cert
export UV_INDEX_STRATEGY=unsafe-best-match # as pip does; the hashes in requirements.txt decide which files are accepted
export VIRTUAL_ENV=$PWD/.venv
exec .venv/bin/uv "$@"
