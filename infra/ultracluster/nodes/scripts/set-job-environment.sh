#!/bin/bash
# Sets environment variables, "NAME=VALUE" each, for jobs (TaskProlog) and for login shells on the node.
# Removes the limit of locked memory, because EFA registers every buffer: of slurmd, which is the maximum for jobs, and of
# sessions, whose limits Slurm propagates to the jobs that they submit.
set -euo pipefail
mkdir -p /opt/ultracluster
{
  echo '#!/bin/bash'
  for variable in "$@"; do
    printf "echo 'export %s'\n" "$variable"
  done
} > /opt/ultracluster/task-prolog
chmod 755 /opt/ultracluster/task-prolog
for variable in "$@"; do
  echo "export $variable"
done > /etc/profile.d/ultracluster.sh
mkdir -p /etc/security/limits.d
printf '* %s memlock unlimited\n' soft hard > /etc/security/limits.d/ultracluster.conf
mkdir -p /etc/systemd/system/slurmd.service.d
printf '[Service]\nLimitMEMLOCK=infinity\n' > /etc/systemd/system/slurmd.service.d/locked-memory.conf
systemctl daemon-reload
