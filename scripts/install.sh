#!/usr/bin/env bash
# Installs the Python packages into .venv: exactly those of requirements.txt, and this project, with localaws, as editable installs.
set -euo pipefail
cd "$(dirname "$0")/.."

newest_python() {
    for python in python3.14 python3.13 python3.12 python3.11 python3; do
        if "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    echo "Install Python 3.11 or newer with its venv module. On Debian or Ubuntu: apt-get install python3-venv" >&2
    return 1
}

locked() { # prints the version and hashes of package $1 from requirements.txt
    sed -n "/^$1==/,/^    # via/p" requirements.txt
}

if [ ! -x .venv/bin/uv ]; then
    python=$(newest_python)
    echo "Creating .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
    .venv/bin/pip --disable-pip-version-check install --quiet --no-deps --require-hashes --only-binary :all: -r <(locked uv)
fi
echo "Installing the packages of requirements.txt"
scripts/uv.sh pip sync --quiet --require-hashes --only-binary :all: requirements.txt
scripts/uv.sh pip install --quiet --no-deps --no-build-isolation --editable . --editable localaws
