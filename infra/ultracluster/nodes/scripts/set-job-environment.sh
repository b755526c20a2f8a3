#!/bin/bash
# Sets environment variables for jobs, "NAME=VALUE" each: Slurm runs the program below before each task and batch script
# and adds what it exports. Login shells on the node get them too. Without variables the program exports nothing.
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
