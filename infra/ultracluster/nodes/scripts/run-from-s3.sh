#!/bin/bash
# Downloads the script $2 of the bucket $1 in Region $4, checks that $3 is its SHA-256, and runs it with $4 and $5.
set -euo pipefail
file=/var/lib/ultracluster/from-s3.sh
AWS_RETRY_MODE=standard AWS_MAX_ATTEMPTS=10 \
  aws s3api get-object --region "$4" --bucket "$1" --key "$2" "$file" > /dev/null
echo "$3  $file" | sha256sum --check --status
bash "$file" "$4" "$5"
