#!/bin/bash
# Mounts file systems over NFS, now and at each boot. Each argument is one of them: what to mount, where, and the options.
# A file system at /home first gets the folders of the image's users, with their SSH keys, which the mount would hide.
set -euo pipefail

for _ in $(seq 30); do
  command -v mount.nfs >/dev/null && break
  if command -v apt-get >/dev/null; then
    # it fails while an unattended upgrade holds dpkg's lock
    DEBIAN_FRONTEND=noninteractive apt-get install -y nfs-common || apt-get update || true
  else
    dnf install -y nfs-utils || true
  fi
  command -v mount.nfs >/dev/null || sleep 10
done
command -v mount.nfs >/dev/null

start() { # a unit, and where it mounts
  for _ in $(seq 30); do
    if systemctl start "$1"; then
      break
    fi
    sleep 10
  done
  mountpoint -q "$2"
}

copy_homes() { # to where the file system is mounted; nodes that boot together copy into a folder of their own first
  for folder in /home/*; do
    name=${folder##*/}
    if [ -d "$folder" ] && [ ! -e "$1/$name" ]; then
      if ! cp -a "$folder" "$1/.$name.$HOSTNAME" || ! mv -T "$1/.$name.$HOSTNAME" "$1/$name"; then
        rm -rf "$1/.$name.$HOSTNAME"
        [ -e "$1/$name" ] || echo "$folder of the image could not be copied" >&2
      fi
    fi
  done
}

for each in "$@"; do
  read -r source path options <<< "$each"
  unit=$(systemd-escape --path --suffix=mount "$path")
  mkdir -p "$path"
  if [ "$path" = /home ] && ! mountpoint -q /home; then
    staging=/run/ultracluster/home
    mkdir -p "$staging"
    for _ in $(seq 30); do
      mount -t nfs -o "$options" "$source" "$staging" && break
      sleep 10
    done
    mountpoint -q "$staging"
    copy_homes "$staging"
    umount "$staging"
  fi
  cat > "/etc/systemd/system/$unit" <<UNIT
[Unit]
Description=NFS file system
Requires=network-online.target
After=network-online.target

[Mount]
What=$source
Where=$path
Type=nfs
Options=$options
TimeoutSec=5min

[Install]
WantedBy=remote-fs.target
UNIT
  systemctl daemon-reload
  systemctl enable "$unit"
  start "$unit" "$path"
done
