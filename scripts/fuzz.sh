#!/usr/bin/env bash
# scripts/fuzz.sh BUILD_DIR SECONDS JOBS: every fuzz target of the build for so many seconds. A finding stops with its input kept in .cache/fuzz. An input
# that takes 20 seconds or 2 GiB (with the sanitizers' own share) is a finding too.
set -euo pipefail
build=$1 seconds=$2 jobs=$3
mkdir -p .cache/fuzz/seeds
# Real inputs as seeds: recordings, error texts, traces.
for f in tests/fixtures/torch/*.pickle.xz; do
  out=.cache/fuzz/seeds/$(basename "${f%.xz}")
  # head goes before xz is done: that one's end is no failure
  [ -s "$out" ] || head -c 65536 < <(xz -dc "$f" 2> /dev/null) > "$out"
done
for f in tests/golden/*/*/trace.txt; do cp -n "$f" ".cache/fuzz/seeds/$(basename "$(dirname "$f")").trace" 2>/dev/null || true; done
cp -n tests/fixtures/errors/*.txt tests/fixtures/samples/*.* .cache/fuzz/seeds/ 2>/dev/null || true
# Shapes of hostile input: nested, packed, overlapping, crowded.
python3 scripts/fuzz_seeds.py .cache/fuzz
# A core dump's tables come last: cut short it is only ever refused.
mkdir -p .cache/fuzz/core_dump_fuzz
for f in tests/fixtures/coredump/*.core.xz; do xz -dc "$f" > ".cache/fuzz/core_dump_fuzz/$(basename "${f%.xz}")"; done
run() {
  name=$(basename "$1")
  mkdir -p ".cache/fuzz/$name"
  longest=65536
  memory=2048 time=20
  case $name in
    core_dump_fuzz) longest=1048576 memory=3072 ;;
    # A few bytes stand for many lines or tables.
    crowded_trace_fuzz | crafted_dump_fuzz) longest=512 ;;
  esac
  "$1" -max_total_time="$seconds" -max_len="$longest" -rss_limit_mb="$memory" -timeout="$time" -print_final_stats=1 -artifact_prefix=".cache/fuzz/$name-" \
    ".cache/fuzz/$name" .cache/fuzz/seeds > ".cache/fuzz/$name.log" 2>&1 || { echo "$name FAILED, see .cache/fuzz/$name.log"; return 1; }
  echo "$name: clean, $(grep -o 'stat::number_of_executed_units: *[0-9]*' ".cache/fuzz/$name.log" | grep -o '[0-9]*$') inputs"
}
export -f run; export seconds
find "$build" -maxdepth 1 -name '*_fuzz' -type f -executable -print0 | xargs -0 -P "$jobs" -I{} bash -c 'run {}'
