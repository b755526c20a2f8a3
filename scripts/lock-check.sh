#!/usr/bin/env bash
# Fails if a lock file does not match its project file, or names a download host.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

mkdir -p "$fresh/tests/access/simulator"
cp requirements.txt package.json package-lock.json .npmrc "$fresh"
cp tests/access/simulator/{package.json,package-lock.json,.npmrc} "$fresh/tests/access/simulator"
scripts/lock.sh "$fresh/requirements.txt"
npm install --package-lock-only --prefix "$fresh" >/dev/null
npm install --package-lock-only --prefix "$fresh/tests/access/simulator" >/dev/null
for lock in requirements.txt package-lock.json tests/access/simulator/package-lock.json; do
    diff -u "$lock" "$fresh/$lock" || { echo "$lock is out of date. Run: make lock" >&2; exit 1; }
    if grep -nE '(https?|git)[:+]' "$lock"; then echo "$lock names a download host" >&2; exit 1; fi
done
echo "requirements.txt and both package-lock.json are up to date"
