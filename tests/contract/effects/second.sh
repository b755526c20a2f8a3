#!/bin/bash
set -euo pipefail
echo second
