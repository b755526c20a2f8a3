#!/usr/bin/env bash
# Takes the CRDs that tests read out of the Go modules of tests/servers/modules/crds.txt, unless they are there, and prints their folder.
# Needs Go and its module proxy; Go checks each module against its checksum database. Takes seconds and 150 MB of Go's module cache.
set -euo pipefail
cd "$(dirname "$0")/.."

list=$PWD/tests/servers/modules/crds.txt
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ultracluster/engines
folder=$cache/crds-$(sha256sum <"$list" | cut -c 1-12)

mkdir -p "$cache"
exec 9>"$cache/crds.lock"
flock 9
if [ ! -d "$folder" ]; then
    command -v go >/dev/null || { echo "needs Go" >&2; exit 1; }
    rm -rf "$folder.new"
    mkdir "$folder.new"
    grep -v '^#' "$list" | while read -r module version place; do
        # outside a module, so that no go.mod decides the version
        source=$(cd / && GOFLAGS=-mod=mod go mod download -json "$module@$version" | sed -nE 's/^\t"Dir": "(.*)",$/\1/p')
        [ -n "$source" ] || { echo "the Go module proxy has no $module $version" >&2; exit 1; }
        find "$source/$place" -name '*_*.yaml' -exec cp --no-preserve=mode -t "$folder.new" {} +
    done
    mv "$folder.new" "$folder"
fi
echo "$folder"
