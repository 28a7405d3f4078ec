#!/usr/bin/env bash
# scripts/lint.sh BUILD_DIR: clang-tidy over our sources, headers that compile alone, and the rule that a layer includes only those before it.
set -euo pipefail
build=$1
status=0
order="base confine trace driver capture vgpu sources facts models dryrun rules plan report cli"
for layer in $order; do
  seen=0
  for other in $order; do
    if [ "$seen" = 1 ] && grep -rnE "#include \"$other/" "src/$layer"; then echo "src/$layer includes src/$other, which stands after it"; status=1; fi
    [ "$layer" = "$other" ] && seen=1
  done
done
for header in $(find src -name '*.h' ! -name '*_test_support.h'); do
  g++ -std=c++20 -fsyntax-only -x c++ -Isrc -I"$build/generated" -isystem .cache/cuda/nvidia/cu13/include -include "$header" /dev/null || { echo "$header does not compile alone"; status=1; }
done
find src -name '*.cpp' ! -name '*_test.cpp' ! -name '*_fuzz.cpp' ! -name '*_bench.cpp' -print0 |
  xargs -0 -P "$(nproc)" -n 4 clang-tidy-14 -p "$build" --quiet --warnings-as-errors='*' \
  --checks='-*,bugprone-*,performance-*,-bugprone-easily-swappable-parameters,-bugprone-narrowing-conversions,-bugprone-implicit-widening-of-multiplication-result,-bugprone-exception-escape,-performance-no-int-to-ptr,-performance-enum-size' 2>/dev/null || status=1
exit $status
