#!/usr/bin/env bash
# Downloads the Helm charts that tests/kubernetes renders, at the versions of the catalogue, unless they are there, and prints their folder.
# Uses helm of the CDK's kubectl layer, and needs the charts' repositories. Run it in the project's virtual environment.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/ultracluster/charts
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
helm=$(python -m tests.kubernetes.helm "$cache")
python - <<'PY' | while read -r name version repository; do
from tests.kubernetes.helm import RENDERED
from ultracluster.catalog.software import charts

for name in RENDERED:
    print(name, charts[name].version, charts[name].repository)
PY
    folder=$cache/$name-$version
    [ -d "$folder" ] && continue
    "$helm" pull "$name" --repo "$repository" --version "$version" --untar --untardir "$folder.new" </dev/null >&2
    mv "$folder.new" "$folder"
done
echo "$cache"
