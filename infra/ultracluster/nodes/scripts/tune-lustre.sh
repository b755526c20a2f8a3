#!/bin/bash
# Sets parameters of the Lustre client after each mount at $1, because lctl set_param does not persist them.
set -euo pipefail
mounted=$(systemd-escape --path --suffix=mount "$1")
shift
{
  printf '[Unit]\nDescription=Parameters of the Lustre client\nRequires=%s\nAfter=%s\n\n' "$mounted" "$mounted"
  printf '[Service]\nType=oneshot\n'
  printf 'ExecStart=/usr/sbin/lctl set_param %s\n' "$@"
  printf '\n[Install]\nWantedBy=%s\n' "$mounted"
} > /etc/systemd/system/lustre-tuning.service
systemctl daemon-reload
systemctl enable lustre-tuning.service
systemctl start lustre-tuning.service
