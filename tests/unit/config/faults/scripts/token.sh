#!/bin/bash
git clone https://ghp_0123456789012345678901234567890123456789@github.com/example/site
