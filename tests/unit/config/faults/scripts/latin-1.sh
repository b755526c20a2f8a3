#!/bin/bash
echo café
