#!/bin/bash
cat > /root/.ssh/id_ed25519 <<END
-----BEGIN OPENSSH PRIVATE KEY-----
END
