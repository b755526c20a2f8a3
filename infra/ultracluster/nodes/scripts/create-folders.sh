#!/bin/bash
# Creates folders for users on the Lustre file system at $1, one for each queue, or on none. Opens the folders $2... to
# users: those of links, and whole file systems. Only root can do that, and queues and links appear later than the node: a
# timer tries again every five minutes.
set -euo pipefail
cat > /usr/local/sbin/create-folders <<'SCRIPT'
#!/bin/bash
# Creates folders for users on the file system at $1: queues/QUEUE for each queue; opens the folders $2... to users.
# Mode 1777, as /tmp has it: every user writes, and removes only own files. A folder that somebody changed stays as it is.
set -euo pipefail
root=$1
shift
umask 022

failed() {
  echo "root of this node cannot change $1: it may be squashed. On a host in no_squash_nids, mount the file system and run:" >&2
  echo "  mkdir -p '$1' && chmod 1777 '$1'" >&2
  exit 1
}

if [ "$root" != none ]; then
  mountpoint -q "$root" || { echo "$root is not mounted" >&2; exit 1; }
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
fi
for folder in "$@"; do
  # FSx creates that of a link with the link
  case "$folder" in
    "$root"/*) ;;
    *) mountpoint -q "$folder" || { echo "$folder is not mounted" >&2; exit 1; } ;;
  esac
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
