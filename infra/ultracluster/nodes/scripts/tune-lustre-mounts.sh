#!/bin/bash
# Sets parameters of the Lustre client every minute, because each mount starts with defaults and pods mount at any time.
set -euo pipefail
{
  printf '[Unit]\nDescription=Parameters of the Lustre client\n\n[Service]\nType=oneshot\n'
  # the minus ignores a failure: there may be no mount yet
  printf 'ExecStart=-/usr/sbin/lctl set_param %s\n' "$@"
  printf 'StandardOutput=null\nStandardError=null\nLogLevelMax=warning\n'
} > /etc/systemd/system/lustre-tuning.service
cat > /etc/systemd/system/lustre-tuning.timer <<'UNIT'
[Unit]
Description=Parameters of the Lustre client, every minute

[Timer]
OnBootSec=1min
OnUnitActiveSec=1min

[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable lustre-tuning.timer
systemctl start lustre-tuning.timer
