#!/bin/bash
# Sets environment variables for jobs, "NAME=VALUE" each: Slurm runs the program below before each task and batch script
# and adds what it exports. Login shells on the node get them too. Without variables the program exports nothing.
# Removes the limit of locked memory, because EFA registers every buffer: from slurmd, whose limit is the highest that a
# job can have, and from sessions, whose limit Slurm passes on to the jobs that are submitted in them.
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
