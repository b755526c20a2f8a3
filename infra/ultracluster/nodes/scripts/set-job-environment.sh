#!/bin/bash
# Sets environment variables for what runs on the node: "NAME=VALUE" each, for login shells and PAM sessions.
set -euo pipefail
printf 'export %s\n' "$@" > /etc/profile.d/ultracluster.sh
for variable in "$@"; do
  grep -qxF "$variable" /etc/environment || echo "$variable" >> /etc/environment
done
