#!/bin/bash
# Creates folders for users on the Lustre file system at $1: one for each queue, and opens those of the links $2...
# Only root can do that, and queues and links appear later than the node: a timer tries again every five minutes.
set -euo pipefail
cat > /usr/local/sbin/create-folders <<'SCRIPT'
#!/bin/bash
# Creates folders for users on the file system at $1: queues/QUEUE for each queue; opens the linked folders $2...
# Mode 1777, as /tmp has it: every user writes, and removes only own files. A folder that somebody changed stays as it is.
set -euo pipefail
root=$1
shift
mountpoint -q "$root" || { echo "$root is not mounted" >&2; exit 1; }
umask 022

failed() {
  echo "root of this node cannot change $1: it may be squashed. On a host in no_squash_nids, mount the file system and run:" >&2
  echo "  mkdir -p '$1' && chmod 1777 '$1'" >&2
  exit 1
}

# the image has several versions of Slurm; a controller does not answer a command that is newer than itself
answered=
for sinfo in /opt/aws/pcs/scheduler/slurm-*/bin/sinfo; do
  if queues=$("$sinfo" --noheader --format=%R); then
    answered=yes
    break
  fi
done
[ -n "$answered" ] || { echo "Slurm does not answer" >&2; exit 1; }
for queue in $queues; do
  folder=$root/queues/$queue
  if [ ! -d "$folder" ]; then
    if ! { mkdir -p "$folder" && chmod 1777 "$folder"; }; then
      failed "$folder"
    fi
  fi
done
for link in "$@"; do
  folder=$root$link
  # FSx creates it with the link
  if [ -d "$folder" ] && [ "$(stat -c %u:%a "$folder")" = 0:755 ]; then
    chmod 1777 "$folder" || failed "$folder"
  fi
done
SCRIPT
chmod 755 /usr/local/sbin/create-folders

{
  printf '[Unit]\nDescription=Folders for users on the file system\n\n[Service]\nType=oneshot\n'
  printf 'ExecStart=/usr/local/sbin/create-folders'
  for argument in "$@"; do
    # systemd expands % and $ in a command line
    argument=${argument//%/%%}
    printf ' "%s"' "${argument//\$/\$\$}"
  done
  printf '\n'
} > /etc/systemd/system/create-folders.service
cat > /etc/systemd/system/create-folders.timer <<'UNIT'
[Unit]
Description=Folders for users on the file system

[Timer]
OnActiveSec=1min
OnUnitInactiveSec=5min

[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable create-folders.timer
systemctl start create-folders.timer
