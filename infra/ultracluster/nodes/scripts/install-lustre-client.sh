#!/bin/bash
# Installs the Lustre client of Amazon Linux, with which the FSx CSI driver mounts file systems.
set -euo pipefail
for _ in $(seq 5); do
  rpm -q lustre-client || dnf install -y lustre-client || sleep 10
done
rpm -q lustre-client
