#!/bin/bash
# Drains a node that was not accepted, once slurmd has registered; until then the prolog lets no job run.
set -euo pipefail
[ -s /run/ultracluster/not-accepted ] || exit 0
# shellcheck source=/dev/null
. /opt/ultracluster/health/of-slurm
for _ in $(seq 30); do
  drain "$(cat /run/ultracluster/not-accepted)" && exit 0
  sleep 10
done
exit 1
