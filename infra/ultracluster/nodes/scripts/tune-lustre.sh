#!/bin/bash
# Sets parameters of the Lustre client after each mount at one of the paths in $1, because lctl set_param does not
# persist them.
set -euo pipefail
mounts=()
for path in $1; do
  mounts+=("$(systemd-escape --path --suffix=mount "$path")")
done
shift
{
  printf '[Unit]\nDescription=Parameters of the Lustre client\nRequires=%s\nAfter=%s\n\n' "${mounts[*]}" "${mounts[*]}"
  printf '[Service]\nType=oneshot\n'
  printf 'ExecStart=/usr/sbin/lctl set_param %s\n' "$@"
  printf '\n[Install]\nWantedBy=%s\n' "${mounts[*]}"
} > /etc/systemd/system/lustre-tuning.service
systemctl daemon-reload
systemctl enable lustre-tuning.service
systemctl start lustre-tuning.service
