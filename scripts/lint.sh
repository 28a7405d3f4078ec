#!/usr/bin/env bash
# scripts/lint.sh BUILD_DIR: the rules of the house (architecture.py), headers that compile alone, and clang-tidy over our sources.
set -euo pipefail
build=$1
status=0
python3 scripts/architecture.py || status=1
for header in $(find src -name '*.h' ! -name '*_test_support.h'); do
  g++ -std=c++20 -fsyntax-only -x c++ -Isrc -I"$build/generated" -isystem .cache/cuda/nvidia/cu13/include -include "$header" /dev/null || { echo "$header does not compile alone"; status=1; }
done
find src -name '*.cpp' ! -name '*_test.cpp' ! -name '*_fuzz.cpp' ! -name '*_bench.cpp' -print0 |
  xargs -0 -P "$(nproc)" -n 4 clang-tidy-14 -p "$build" --quiet --warnings-as-errors='*' \
  --checks='-*,bugprone-*,performance-*,-bugprone-easily-swappable-parameters,-bugprone-narrowing-conversions,-bugprone-implicit-widening-of-multiplication-result,-bugprone-exception-escape,-performance-no-int-to-ptr,-performance-enum-size' 2>/dev/null || status=1
exit $status
