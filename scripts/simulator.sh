#!/usr/bin/env bash
# Installs the policy simulator that judges tests/access, as its own lock file pins it. It is AGPL, so it stays apart.
set -euo pipefail
cd "$(dirname "$0")/../tests/access/simulator"
npm ci
