#!/bin/bash
# slurmd starts only after the last step of each boot has succeeded, whatever the PCS agent does when a step fails.
# A PCS agent that is too old for node lifecycle actions would start slurmd on a node without file systems.
set -euo pipefail
mkdir -p /etc/systemd/system/slurmd.service.d
cat > /etc/systemd/system/slurmd.service.d/ultracluster.conf <<'UNIT'
[Service]
ExecStartPre=/usr/bin/test -e /run/ultracluster/ready
UNIT
systemctl daemon-reload
