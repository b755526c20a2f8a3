#!/usr/bin/env bash
# Installs the Python side into .venv: exactly the packages of requirements.txt, and this project in editable form.
set -euo pipefail
cd "$(dirname "$0")/.."

newest_python() {
    for python in python3.14 python3.13 python3.12 python3.11 python3; do
        if "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    echo "Python 3.11 or newer with its venv module is needed; on Debian or Ubuntu: apt-get install python3-venv" >&2
    return 1
}

locked() { # the lines of requirements.txt for one package: its version and hashes
    sed -n "/^$1==/,/^    # via/p" requirements.txt
}

if [ ! -x .venv/bin/uv ]; then
    python=$(newest_python)
    echo "Creating .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
    .venv/bin/pip --disable-pip-version-check install --quiet --no-deps --require-hashes -r <(locked uv)
fi
echo "Installing the packages of requirements.txt"
scripts/uv.sh pip sync --quiet --require-hashes requirements.txt
scripts/uv.sh pip install --quiet --no-deps --no-build-isolation --editable .
