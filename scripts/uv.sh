#!/usr/bin/env bash
# Runs the locked uv with the package index that pip is configured for, since uv reads no pip configuration.
set -euo pipefail
cd "$(dirname "$0")/.."

settings=$(.venv/bin/python -m pip config list 2>/dev/null || true)
pip_setting() { # environment first, then files; lines read  global.index-url='...'
    sed -nE "s/^(:env:|global|install)\.$1='(.*)'$/\2/p" <<<"$settings" | head -n 1 | sed 's/\\n/ /g; s/^ //'
}
give() { # to uv, under the name $1, what pip calls $2, unless uv has a value of its own
    local value
    value=${!1:-$(pip_setting "$2")}
    if [ -n "$value" ]; then export "$1=$value"; fi
}

give UV_DEFAULT_INDEX index-url
give UV_INDEX extra-index-url
give UV_FIND_LINKS find-links
give SSL_CERT_FILE cert
export UV_INDEX_STRATEGY=unsafe-best-match # pip's own rule; the hashes of the lock decide what is accepted
export VIRTUAL_ENV=$PWD/.venv
exec .venv/bin/uv "$@"
