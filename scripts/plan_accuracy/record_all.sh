#!/bin/sh
# Records every program on the GPU of this machine, one after the other, into OUT/NAME.json.gz.   record_all.sh OUT
cd "$(dirname "$0")" || exit 1
mkdir -p "$1"
for program in programs/*.py; do
  case $program in *_model.py) continue ;; esac
  timeout 120 python record.py "$program" "$1/$(basename "$program" .py).json.gz" 2>&1 | tail -1
done
