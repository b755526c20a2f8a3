#!/bin/bash
# Sets up Enroot $2 or newer and Pyxis for Slurm $1. Jobs unpack containers under $3; $4 is the kind of node: login, cpu or gpus.
# What the image holds is used; what it lacks is installed from the folder $5, whose SHA256SUMS has the SHA-256 $6.
# Pyxis is a plugin of one version of Slurm, with which slurmd of another does not start: so its version is checked.
set -euo pipefail
slurm_version=$1 minimum=$2 folder=$3 kind=$4 source=${5:-} checksum=${6:-}
slurm=/opt/aws/pcs/scheduler/slurm-$slurm_version
plugin=$slurm/lib/slurm/spank_pyxis.so
fragment=/etc/aws/pcs/scheduler/slurm-$slurm_version/plugstack.conf.d/pyxis.conf
files=/var/lib/ultracluster/containers

fail() {
  echo "containers: $*" >&2
  exit 1
}

plugin_version() { # prints the version of Slurm that a plugin was compiled for, such as 25.11
  python3 -IS - "$1" <<'PYTHON'
import struct, sys

data = open(sys.argv[1], "rb").read()
if data[:6] != b"\x7fELF\x02\x01":
    sys.exit("not a library of a 64-bit Linux")
start, = struct.unpack_from("<Q", data, 40)
size, count = struct.unpack_from("<HH", data, 58)
sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
for _, kind, _, _, offset, length, link, *_ in sections:
    for at in range(offset, offset + length, 24) if kind == 11 else ():
        name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
        first = sections[link][4] + name
        if data[first : data.index(b"\0", first)] == b"plugin_version" and section:
            home = sections[section]
            number, = struct.unpack_from("<I", data, value - home[3] + home[4])
            print(f"{number >> 16}.{number >> 8 & 255:02}")
            sys.exit()
sys.exit("not a plugin of Slurm")
PYTHON
}

old_enroot() { # whether Enroot is missing or too old
  local found
  found=$(enroot version 2> /dev/null) || return 0
  [ "$(printf '%s\n' "$minimum" "$found" | sort -V | head -n 1)" != "$minimum" ]
}

download() { # name below the folder
  mkdir -p "$(dirname "$files/$1")"
  local path=${source#s3://}
  if [ "$path" = "$source" ]; then
    # names of packages may contain both
    local name=${1//%/%25}
    curl -fsSL --retry 5 --retry-connrefused --connect-timeout 10 --max-time 300 -o "$files/$1" "$source/${name//+/%2B}"
  else
    # the folder may be a bucket itself
    local key=${path#"${path%%/*}"}/$1
    AWS_RETRY_MODE=standard AWS_MAX_ATTEMPTS=10 \
      aws s3api get-object --bucket "${path%%/*}" --key "${key#/}" "$files/$1" > /dev/null
  fi
}

fetch() { # pattern of names: downloads the files that SHA256SUMS has for it, and checks them
  local names
  mapfile -t names < <(awk -v pattern="$1" '$2 ~ pattern {print $2}' "$files/SHA256SUMS")
  [ "${#names[@]}" -gt 0 ] || fail "SHA256SUMS of $source has no file $1"
  for name in "${names[@]}"; do
    download "$name" || fail "cannot download $source/$name"
    (cd "$files" && awk -v name="$name" '$2 == name' SHA256SUMS | sha256sum --check --strict --status) ||
      fail "$source/$name is not the file of SHA256SUMS"
  done
}

need_files() { # reason
  [ -n "$source" ] || fail "$1, and control_plane.containers names no files"
  command -v dpkg > /dev/null || fail "$1, and files are installed on Ubuntu and Debian only: put it into the image"
  mkdir -p "$files"
  download SHA256SUMS || fail "cannot download $source/SHA256SUMS"
  echo "$checksum  $files/SHA256SUMS" | sha256sum --check --status || fail "SHA256SUMS of $source is another one"
  architecture=$(dpkg --print-architecture)
}

install_packages() {
  local apt=(apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 -o Acquire::http::Timeout=20)
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
  local packages=("$files/$architecture"/*.deb)
  # the folder may hold the packages that these need, too: then no other source is asked
  "${apt[@]}" install -y --no-install-recommends "${packages[@]}" && return
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends "${packages[@]}"
}

[ -d "$slurm" ] || fail "the image has no Slurm $slurm_version in $slurm"
if [ -e "$fragment" ]; then
  plugin=$(awk '{print $2; exit}' "$fragment")
fi
found=$([ ! -e "$plugin" ] || plugin_version "$plugin")
if [ "$found" != "$slurm_version" ]; then
  need_files "Pyxis is for Slurm ${found:-none}, not $slurm_version"
  fetch "^$architecture/slurm-$slurm_version/spank_pyxis[.]so$"
  found=$(plugin_version "$files/$architecture/slurm-$slurm_version/spank_pyxis.so")
  [ "$found" = "$slurm_version" ] || fail "spank_pyxis.so of $source is for Slurm $found, not $slurm_version"
  plugin=$slurm/lib/slurm/spank_pyxis.so
  install -D -m 755 "$files/$architecture/slurm-$slurm_version/spank_pyxis.so" "$plugin"
fi
if old_enroot; then
  need_files "Enroot is missing or older than $minimum"
  fetch "^$architecture/[^/]+[.]deb$"
  install_packages
  old_enroot && fail "Enroot is still older than $minimum"
fi
rm -rf "$files"

if [ "$kind" = gpus ] && ! command -v nvidia-container-cli > /dev/null; then
  fail "nvidia-container-cli is missing, without which containers get no GPU"
fi
userns=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ -e "$userns" ] && [ "$(< "$userns")" = 1 ] && [ ! -e /etc/apparmor.d/enroot ]; then
  fail "AppArmor lets users make no namespaces, and Enroot's profile /etc/apparmor.d/enroot is missing"
fi

mkdir -p "$(dirname "$fragment")"
# required: a job whose container does not start would otherwise run outside it
echo "required $plugin" > "$fragment"
for hook in /usr/share/enroot/hooks.d/50-slurm-{pmi,pytorch}.sh; do
  [ ! -e "$hook" ] || ln -sf "$hook" /etc/enroot/hooks.d/
done
[ "$kind" != login ] || exit 0

# what enroot.conf sets wins over files of enroot.conf.d
sed -i -E 's/^[[:space:]]*(ENROOT_(CACHE|DATA|RUNTIME|TEMP)_PATH|NVIDIA_(DRIVER_CAPABILITIES|VISIBLE_DEVICES))\>/#&/' \
  /etc/enroot/enroot.conf
mkdir -p /etc/enroot/enroot.conf.d
{
  # Enroot evaluates the values as the user
  printf '%s %s\n' ENROOT_CACHE_PATH "$folder/\$(id -u)/cache"
  printf '%s %s\n' ENROOT_DATA_PATH "$folder/\$(id -u)/data"
  printf '%s %s\n' ENROOT_TEMP_PATH "$folder/\$(id -u)/tmp"
  printf '%s %s\n' ENROOT_RUNTIME_PATH "/run/enroot/\$(id -u)"
  if [ "$kind" = gpus ]; then
    # without them an image that names neither sees no GPU, or no CUDA
    printf '%s %s\n' NVIDIA_VISIBLE_DEVICES all NVIDIA_DRIVER_CAPABILITIES all
  fi
} > /etc/enroot/enroot.conf.d/ultracluster.conf

# Enroot's hook for MPI calls scontrol, and slurmd's PATH has none or that of another version
touch /etc/default/slurmd
sed -i '/^PATH=/d' /etc/default/slurmd
echo "PATH=$slurm/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" >> /etc/default/slurmd

mkdir -p "$folder" /opt/ultracluster/prolog.d /opt/ultracluster/epilog.d
chown root: "$folder"
chmod 755 "$folder"
echo "$folder" > /opt/ultracluster/container-folder
cat > /opt/ultracluster/prolog.d/30-container-folders <<'SCRIPT'
#!/bin/bash
# Creates the user's folders of Enroot, which nobody else can read or replace, and records that the job is here. What holds
# them is root's, so that a user cannot put a link in their place.
set -euo pipefail
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
folder=$(< /opt/ultracluster/container-folder)
jobs=/run/ultracluster/container-jobs/$SLURM_JOB_UID
mkdir -p "$jobs"
exec 9> /run/ultracluster/container-jobs/.lock
flock -w 10 9
: > "$jobs/$SLURM_JOB_ID"
# Enroot itself, called by root, makes the first two so that only root enters them
install -d -m 755 -o root -g root "$folder" /run/enroot
install -d -m 711 -o root -g root "$folder/$SLURM_JOB_UID"
install -d -m 700 -o "$SLURM_JOB_UID" -g "$SLURM_JOB_GID" \
  "$folder/$SLURM_JOB_UID"/{cache,data,tmp} "/run/enroot/$SLURM_JOB_UID"
SCRIPT
cat > /opt/ultracluster/epilog.d/30-containers <<'SCRIPT'
#!/bin/bash
# Removes the job's containers, and after the last job of the user on this node everything but the cache of downloaded
# layers. It never fails: what it could not remove in 40 seconds, the end of another job removes.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
folder=$(< /opt/ultracluster/container-folder)
own=$folder/$SLURM_JOB_UID jobs=/run/ultracluster/container-jobs/$SLURM_JOB_UID
[ -d "$own" ] || exit 0
removed=$folder/.removed
mkdir -p -m 700 "$removed"
(
  flock -w 10 9 || exit 0
  rm -f "$jobs/$SLURM_JOB_ID"
  remains=("$own/data/pyxis_$SLURM_JOB_ID"[._]*)
  if rmdir "$jobs" 2> /dev/null; then
    remains=("$own"/{data,tmp})
    rm -rf --one-file-system "/run/enroot/$SLURM_JOB_UID"
  fi
  # moved at once, removed later: the user's next job finds empty folders
  mv -t "$(mktemp -d "$removed/XXXXXX")" -- "${remains[@]}" 2> /dev/null
) 9> /run/ultracluster/container-jobs/.lock
timeout --kill-after=5 40 rm -rf --one-file-system "$removed"
exit 0
SCRIPT
chmod 755 /opt/ultracluster/prolog.d/30-container-folders /opt/ultracluster/epilog.d/30-containers
