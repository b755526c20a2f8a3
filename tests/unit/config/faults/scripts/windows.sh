#!/bin/bash
echo configured
