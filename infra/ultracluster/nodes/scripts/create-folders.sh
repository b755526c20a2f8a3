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

share() { # make or open, folder, path below it; fails with what to do if root of this node cannot
  python3 -IS - "$@" <<'PROGRAM' || {
"""Gives a folder mode 1777, if it is made here, or is root's with mode 755. Users write to its parents: no link is followed."""

import os
import sys

action, folder, path = sys.argv[1:]
at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
made = False
for name in filter(None, path.split("/")):
    try:
        if action == "make":
            os.mkdir(name, 0o755, dir_fd=at)
            made = True
    except FileExistsError:
        made = False
    try:
        at = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
    except FileNotFoundError:
        sys.exit()  # FSx creates the folder of a link with the link
status = os.fstat(at)
if status.st_uid == os.geteuid() and (made or action == "open" and status.st_mode & 0o7777 == 0o755):
    os.fchmod(at, 0o1777)
PROGRAM
    echo "root of this node cannot change $2/$3: it may be squashed, or there is a link. On a host in no_squash_nids, mount the file" >&2
    echo "system and run: mkdir -p '$2/$3' && chmod 1777 '$2/$3'" >&2
    exit 1
  }
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
    share make "$root" "queues/$queue"
  done
fi
for folder in "$@"; do
  case "$folder" in
    "$root"/*) share open "$root" "${folder#"$root"/}" ;;
    *)
      mountpoint -q "$folder" || { echo "$folder is not mounted" >&2; exit 1; }
      share open "$folder" ""
      ;;
  esac
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
