#!/bin/bash
# Creates the users of the list in the SSM parameter $1 in Region $2, and again every ten minutes, by a systemd timer:
# the list changes while the node runs. With $3 = shared, /home is a shared file system, and must be mounted.
set -euo pipefail
mkdir -p /usr/local/sbin /etc/ssh/authorized_keys.d /etc/ssh/sshd_config.d
chmod 755 /etc/ssh/authorized_keys.d
cat > /usr/local/sbin/create-users <<'SCRIPT'
#!/bin/bash
# Creates and changes users and groups of this machine as the list says, and locks those that are no longer in it.
# $1 is the SSM parameter of the list, $2 the Region, $3 shared or local homes.
# Lines of the list: group NAME GID | user NAME UID GID SUDO | member GROUP USER | key USER TYPE KEY COMMENT
set -euo pipefail
parameter=$1 region=$2 homes=${3:-local}
state=/var/lib/ultracluster/users
mkdir -p "$state"
chmod 700 "$state"
exec 9> "$state/lock"
flock 9

# Systems Manager throttles reads when many nodes boot; attempts wait for random times
export AWS_RETRY_MODE=standard AWS_MAX_ATTEMPTS=10
ask() {
  aws ssm "$1" --region "$region" --cli-connect-timeout 10 "${@:2}"
}
parameter_values() { # values of up to ten parameters in this order, though the answer has another
  local answer
  answer=$(ask get-parameters --names "$@" --output json) || return 1
  python3 -c '
import json, sys
found = {each["Name"]: each["Value"] for each in json.load(sys.stdin)["Parameters"]}
missing = [name for name in sys.argv[1:] if name not in found]
if missing:
    sys.exit("there is no parameter " + ", ".join(missing))
print(*map(found.get, sys.argv[1:]), sep="\n")' "$@" <<< "$answer"
}
fetch() { # the list into $state/new, what the parameter says into $value: number of parts, and SHA-256
  local parts checksum names i
  value=$(ask get-parameter --name "$parameter" --query Parameter.Value --output text) || return 1
  [ "$value" != "$(cat "$state/applied" 2> /dev/null)" ] || return 0
  read -r parts checksum <<< "$value"
  mapfile -t names < <(seq --format "$parameter/%.0f" "$parts")
  for ((i = 0; i < parts; i += 10)); do
    parameter_values "${names[@]:i:10}" || return 1
  done > "$state/new"
  # a deployment that is under way has changed some parts
  echo "$checksum  $state/new" | sha256sum --check --status || { echo "the list has another checksum than $parameter says" >&2; return 1; }
}
for attempt in 1 2 3 4 5 6; do
  fetch && break
  if [ "$attempt" = 6 ]; then
    echo "the list of users cannot be read" >&2
    # the node keeps the users that it has
    [ -e "$state/applied" ] || exit 1
    exit 0
  fi
  sleep $((5 + RANDOM % 11))
done
[ "$value" != "$(cat "$state/applied" 2> /dev/null)" ] || exit 0
if [ "$homes" = shared ]; then
  mountpoint -q /home || { echo "/home is not mounted" >&2; exit 1; }
fi

failed=
refuse() {
  echo "$1" >&2
  failed=yes
}

make_group() { # name, gid
  local found
  if found=$(getent group "$1"); then
    [ "$(cut -d: -f3 <<< "$found")" = "$2" ] || refuse "the group $1 exists with another gid than $2"
  else
    groupadd --gid "$2" "$1" || refuse "the group $1 with gid $2 cannot be created"
  fi
}

make_user() { # name, uid, gid
  local found
  [ "$2" != "$3" ] || make_group "$1" "$3"
  if found=$(getent passwd "$1"); then
    if [ "$(cut -d: -f3 <<< "$found")" != "$2" ]; then
      refuse "the user $1 exists with another uid than $2: files of the old one would be left"
      return
    fi
    # changes what differs, and unlocks a user who is in the list again
    usermod --gid "$3" --expiredate '' "$1" || refuse "the user $1 cannot be changed"
  else
    # no password: * is not a locked account, as ! is
    useradd --uid "$2" --gid "$3" --no-create-home --home-dir "/home/$1" --shell /bin/bash --password '*' "$1" ||
      { refuse "the user $1 with uid $2 cannot be created"; return; }
  fi
  make_home "$1" "$2" "$3"
}

make_home() { # name, uid, gid; complete before it has its name, since other nodes may do the same on a shared file system
  local new
  [ ! -e "/home/$1" ] || return 0
  new=$(mktemp --directory "/home/.$1.XXXXXXXX") || { refuse "root cannot write to /home"; return; }
  if cp --recursive --no-target-directory /etc/skel "$new" && chmod 700 "$new" && chown --recursive --no-dereference "$2:$3" "$new"; then
    mv --no-target-directory "$new" "/home/$1" 2> /dev/null || rm --recursive --force "$new"
  else
    rm --recursive --force "$new"
  fi
  [ -d "/home/$1" ] || refuse "/home/$1 cannot be created"
}

# Session Manager creates its user with the next free uid, which may be one of the list later
if ! getent passwd ssm-user > /dev/null; then
  useradd --system --create-home --home-dir /var/lib/ssm-user --shell /bin/bash ssm-user
  printf 'ssm-user ALL=(ALL) NOPASSWD:ALL\n' > /etc/sudoers.d/ssm-agent-users
  chmod 440 /etc/sudoers.d/ssm-agent-users
fi

list=$state/new
keys=$(mktemp --directory /etc/ssh/authorized_keys.d/.new.XXXXXXXX)
chmod 755 "$keys"
sudoers=$(mktemp)
trap 'rm --recursive --force "$keys" "$sudoers"' EXIT
touch "$state/users" "$state/groups"
while read -r kind name rest; do
  # shellcheck disable=SC2086 # words of the list
  case $kind in
    group) make_group "$name" $rest ;;
    user)
      set -- $rest
      make_user "$name" "$1" "$2"
      : > "$keys/$name"
      [ "$3" != yes ] || echo "$name ALL=(ALL) NOPASSWD:ALL" >> "$sudoers"
      ;;
    key) echo "$rest" >> "$keys/$name" ;;
  esac
done < "$list"
awk '$1 == "user" { print $2 }' "$list" > "$state/users.new"
awk '$1 == "group" { print $2 }' "$list" > "$state/groups.new"
while read -r group; do
  members=$(awk -v group="$group" '$1 == "member" && $2 == group { print $3 }' "$list" | paste --serial --delimiters=,)
  getent group "$group" > /dev/null || continue
  gpasswd --members "$members" "$group" || refuse "the members of $group cannot be set"
done < <(sort --unique "$state/groups" "$state/groups.new")

while read -r name; do
  if ! grep --quiet --line-regexp --fixed-strings -- "$name" "$state/users.new"; then
    # an expired account cannot log in, by any key; jobs and sessions that run go on
    usermod --expiredate 1 "$name" || refuse "the user $name cannot be locked"
  fi
done < "$state/users"

# keys lie outside homes: a home on a shared file system need not be mounted for a login, and root owns what opens an account
chmod 644 "$keys"/* 2> /dev/null || true
for file in /etc/ssh/authorized_keys.d/*; do
  [ -e "$keys/${file##*/}" ] || rm --force "$file"
done
for file in "$keys"/*; do
  [ ! -e "$file" ] || mv "$file" "/etc/ssh/authorized_keys.d/${file##*/}"
done
chmod 440 "$sudoers"
visudo --check --quiet --file "$sudoers" && mv "$sudoers" /etc/sudoers.d/ultracluster-users

mv "$state/groups.new" "$state/groups"
# a user who could not be locked is tried again
if [ -z "$failed" ]; then
  mv "$state/users.new" "$state/users"
  echo "$value" > "$state/applied"
  exit 0
fi
sort --unique "$state/users" "$state/users.new" > "$state/users.all"
mv "$state/users.all" "$state/users"
exit 1
SCRIPT
chmod 755 /usr/local/sbin/create-users

# the first value that sshd reads is the one that it uses, and this file is read first
setting='AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/authorized_keys.d/%u'
file=/etc/ssh/sshd_config.d/10-ultracluster-users.conf
if [ "$(cat "$file" 2> /dev/null)" != "$setting" ]; then
  echo "$setting" > "$file"
  for unit in ssh.service sshd.service; do
    if systemctl cat "$unit" > /dev/null 2>&1; then
      systemctl try-reload-or-restart "$unit"
      break
    fi
  done
fi

cat > /etc/systemd/system/create-users.service <<UNIT
[Unit]
Description=Users of the environment
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/create-users $*
LogLevelMax=warning
UNIT
cat > /etc/systemd/system/create-users.timer <<'UNIT'
[Unit]
Description=Users of the environment

[Timer]
OnActiveSec=10min
OnUnitInactiveSec=10min
RandomizedDelaySec=1min

[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable create-users.timer
systemctl start create-users.timer
/usr/local/sbin/create-users "$@"
