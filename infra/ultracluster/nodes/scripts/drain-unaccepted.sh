#!/bin/bash
# Drains a node that admit-jobs did not accept, once slurmd has registered. Until then the prolog fails every job.
set -euo pipefail
[ -s /run/ultracluster/not-accepted ] || exit 0
# shellcheck source=/dev/null
. /opt/ultracluster/health/slurm.sh
for _ in $(seq 30); do
  take_out drain "$(cat /run/ultracluster/not-accepted)" && exit 0
  sleep 10
done
exit 1
