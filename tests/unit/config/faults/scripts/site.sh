#!/bin/bash
set -euo pipefail
echo configured
