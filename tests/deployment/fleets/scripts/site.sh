#!/bin/bash
echo site
