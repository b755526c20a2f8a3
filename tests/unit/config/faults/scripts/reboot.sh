#!/bin/bash
apt-get install -y linux-modules-extra
sudo reboot
