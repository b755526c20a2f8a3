#!/usr/bin/env bash
# Builds the folder of a Debian system with the engines that tests run, unless it exists, and prints its path: cloud-init, systemd,
# Slurm with slurmdbd, sshd with sudo, nft, and Prometheus with promtool, Alertmanager with amtool and node exporter, which run without
# entering the folder. MariaDB 10.11 of Debian 12 is below opt/mariadb: slurmdbd stops on the 11.8 of the suite ("concat" of an
# unset variable fails), and apt of the machine downloads it with the libraries that the suite has under other names.
# Needs root, debootstrap, and the Debian mirror that apt of this machine uses. Takes about 130 s of CPU and 700 MB.
set -euo pipefail

suite=forky
packages=cloud-init,iproute2,python3-cffi-backend,systemd,udev,slurmctld,slurmd,slurmdbd,slurm-client,munge,prometheus,prometheus-alertmanager,prometheus-node-exporter,sudo,openssh-server,openssh-client,nftables
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ultracluster/engines
folder=$cache/$suite-6
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep -v security | head -n 1 || true)

# MariaDB in the folder $1, with a data directory that has system tables and no accounts
database() {
    local at=$1/opt/mariadb download=$1/var/lib/mariadb apt
    mkdir -p "$at" "$download/lists/partial" &&
        echo "deb [signed-by=$1/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" >"$download/sources.list" &&
        cd "$download" &&
        apt=(-qq -o "Dir::Etc::SourceList=$PWD/sources.list" -o "Dir::Etc::SourceParts=$PWD/none" -o "Dir::State::Lists=$PWD/lists"
            -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root) &&
        apt-get update "${apt[@]}" &&
        apt-get download "${apt[@]}" mariadb-server-core libaio1 libnuma1 liburing2 &&
        for package in *.deb; do dpkg-deb --extract "$package" "$at" || return; done &&
        rm -rf "$download" &&
        mkdir "$at/data" &&
        (printf 'CREATE DATABASE mysql;\nUSE mysql;\n' && cat "$at/usr/share/mysql/mysql_system_tables.sql") |
        chroot "$1" env "LD_LIBRARY_PATH=/opt/mariadb/usr/lib/$(uname -m)-linux-gnu" /opt/mariadb/usr/sbin/mariadbd --no-defaults \
            --bootstrap --user=root --datadir=/opt/mariadb/data --lc-messages-dir=/opt/mariadb/usr/share/mysql --innodb-log-file-size=8M
}

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
    (database "$folder.new") >"$cache/mariadb.log" 2>&1 || { tail -n 5 "$cache/mariadb.log" >&2; exit 1; }
    rm -rf "$folder.new"/var/cache/apt "$folder.new"/usr/share/{doc,info,locale,man} "$folder"
    touch "$folder.new/complete"
    mv "$folder.new" "$folder"
fi
echo "$folder"
