#!/usr/bin/env bash
# Builds the folder of a Debian system with the engines that tests run, unless it exists, and prints its path: cloud-init, systemd,
# Slurm, sshd with sudo, and Prometheus with promtool, Alertmanager with amtool and node exporter, which run without entering the folder.
# Needs root, debootstrap, and the Debian mirror that apt of this machine uses. Takes about 110 s of CPU and 550 MB.
set -euo pipefail

suite=forky
packages=cloud-init,iproute2,python3-cffi-backend,systemd,udev,slurmctld,slurmd,slurm-client,munge,prometheus,prometheus-alertmanager,prometheus-node-exporter,sudo,openssh-server,openssh-client
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ultracluster/engines
folder=$cache/$suite-4
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep -v security | head -n 1 || true)

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ ! -e "$folder/complete" ]; then
    [ "$(id -u)" -eq 0 ] || { echo "needs root" >&2; exit 1; }
    command -v debootstrap >/dev/null || { echo "needs the package debootstrap: apt-get install debootstrap" >&2; exit 1; }
    [ -n "$mirror" ] || { echo "apt of this machine has no Debian mirror" >&2; exit 1; }
    rm -rf "$folder.new"
    # debootstrap of an older Debian has no script for the suite, which is the same for all since sid
    script=/usr/share/debootstrap/scripts/$suite
    [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
    debootstrap --variant=minbase --include="$packages" "$suite" "$folder.new" "$mirror" "$script" >"$cache/$suite.log" 2>&1 ||
        { tail -n 5 "$cache/$suite.log" >&2; exit 1; }
    rm -rf "$folder.new"/var/cache/apt "$folder.new"/usr/share/{doc,info,locale,man} "$folder"
    touch "$folder.new/complete"
    mv "$folder.new" "$folder"
fi
echo "$folder"
