#!/bin/bash
# Removes the limit of locked memory for containers, because EFA registers every buffer. Containers inherit containerd's
# limit, 8 MiB by default, above which NCCL falls back to TCP without any message. containerd's base runtime
# specification cannot set it: nodeadm converts its numbers to floats, and infinity does not survive that.
set -euo pipefail
mkdir -p /etc/systemd/system/containerd.service.d
printf '[Service]\nLimitMEMLOCK=infinity\n' > /etc/systemd/system/containerd.service.d/locked-memory.conf
systemctl daemon-reload
