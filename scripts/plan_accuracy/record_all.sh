#!/bin/sh
# Records programs on the GPU of this machine, one after the other, each in its own process, into OUT/NAME.json.gz.   record_all.sh OUT [NAME…]
# Without names: all. A program that fails or takes longer than LIMIT seconds (120) is a line that says so, and the next one follows; its output is in OUT/NAME.txt.
if [ -z "$1" ]; then
  echo "usage: record_all.sh OUT [NAME…]" >&2
  exit 2
fi
mkdir -p "$1" && out=$(cd "$1" && pwd) && cd "$(dirname "$0")" || exit 1
shift
[ $# -gt 0 ] || set -- $(cd programs && ls | sed -n 's/\.py$//p' | grep -v '_model$')
failed=0
for name in "$@"; do
  name=$(basename "$name" .py)
  rm -f "$out/$name.json.gz"
  timeout -k 10 "${LIMIT:-120}" "${PYTHON:-python3}" record.py "programs/$name.py" "$out/$name.json.gz" >"$out/$name.txt" 2>&1
  code=$?
  if [ $code -eq 0 ]; then
    tail -1 "$out/$name.txt"
    rm -f "$out/$name.txt"
  else
    failed=$((failed + 1))
    reason=$(grep -v '^[[:space:]]*$' "$out/$name.txt" | tail -1)
    [ $code -eq 124 ] || [ $code -eq 137 ] && reason="over ${LIMIT:-120} seconds"
    echo "$name FAILED ($code): $reason"
  fi
done
[ $failed -eq 0 ] || { echo "$failed of $# not recorded"; exit 1; }
