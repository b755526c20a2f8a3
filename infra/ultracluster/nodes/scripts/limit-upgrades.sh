#!/bin/bash
# Limits unattended upgrades, which may start as soon as the node boots. They must not upgrade the kernel before the step
# hold-kernel, and Ubuntu's needrestart, which they run, must not restart slurmd: that would kill the node's jobs.
set -euo pipefail
mkdir -p /etc/needrestart/conf.d /etc/apt/apt.conf.d
cat > /etc/needrestart/conf.d/slurmd.conf <<'CONF'
$nrconf{override_rc}{qr(^slurmd)} = 0;
CONF
cat > /etc/apt/apt.conf.d/52hold-kernel <<'CONF'
Unattended-Upgrade::Package-Blacklist { "linux-"; "lustre-client"; };
CONF
