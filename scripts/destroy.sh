#!/usr/bin/env bash
# Destroys the stacks of environment $1 on the embedded AWS, after disabling termination and deletion protection.
# The command $SHOW reads the output of the CDK CLI and prints what is to be seen.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ ! -f "environments/$1.yaml" ]; then
  echo "environments/$1.yaml does not exist, so nobody knows what to destroy. Restore the file, or stop the embedded AWS with" >&2
  echo "all that is deployed: ultracluster local down --force" >&2
  exit 1
fi
# of the file's own account and Region, which may differ from those that `up` was called for last
ultracluster local up "environments/$1.yaml" >/dev/null
. .localaws/env
cdk synth --quiet --no-notices -c env="$1" --output "cdk.out/$1"
.venv/bin/python scripts/unprotect.py "cdk.out/$1"
cdk destroy --no-notices --app "cdk.out/$1" --all --force 2>&1 | ${SHOW:-cat}
