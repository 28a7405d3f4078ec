#!/usr/bin/env bash
# scripts/release/check_binary.sh [BINARY…]: does what we hand out run on every x86-64 Linux with glibc 2.35 or later?
# It may need nothing but glibc's own libraries, and no symbol of glibc newer than that; a library of ours may show nothing but its C functions.
# Prints what each file needs; fails with the reason.
set -euo pipefail
newest_allowed=2.35
allowed_libraries='^(libc\.so\.6|libm\.so\.6|ld-linux-x86-64\.so\.2|linux-vdso\.so\.1)$'

command -v readelf >/dev/null || { echo "readelf is missing; it comes with binutils" >&2; exit 2; }
status=0
say_no() { echo "NOT PORTABLE: $1"; status=1; }

check() {
  local binary=$1 machine libraries library versions version newest shown symbol
  [ -f "$binary" ] || { echo "$binary is not there; build it with: make build" >&2; exit 2; }
  echo "$binary, $(stat -c %s "$binary") bytes"
  machine=$(LC_ALL=C readelf -hW "$binary" | sed -n 's/^ *Machine: *//p')
  [[ "$machine" == *X86-64* ]] || say_no "it is built for $machine"

  echo "needs the libraries"
  libraries=$(LC_ALL=C readelf -dW "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
  for library in $libraries; do
    echo "  $library"
    [[ "$library" =~ $allowed_libraries ]] || say_no "it needs $library, which is not part of glibc"
  done
  if LC_ALL=C readelf -dW "$binary" | grep -qE '\((RPATH|RUNPATH)\)'; then say_no "it carries a library path of the machine it was built on"; fi

  # The version needs ("libc.so.6: GLIBC_2.34 …"), which the loader checks before the program starts.
  versions=$(LC_ALL=C readelf -VW "$binary" | sed -n '/Version needs section/,$ s/.*Name: \([A-Za-z0-9_.]*\) .*/\1/p' | sort -Vu)
  echo "needs the symbol versions"
  for version in $versions; do
    echo "  $version"
    case $version in
      GLIBC_*)
        newest=$(printf '%s\n%s\n' "${version#GLIBC_}" "$newest_allowed" | sort -V | tail -n 1)
        if [ "$newest" != "$newest_allowed" ]; then
          say_no "it needs $version, newer than $newest_allowed"
          LC_ALL=C readelf --dyn-syms -W "$binary" | grep -F "@$version" | awk '{print "    " $8}'
        fi ;;
      *) say_no "it needs $version, which is not a version of glibc" ;;
    esac
  done

  # A C++ symbol that a library shows could take the place of the same one in the program that loads it.
  if [[ "$binary" == *.so ]]; then
    shown=$(LC_ALL=C readelf --dyn-syms -W "$binary" | awk '$1 ~ /^[0-9]+:$/ && $7 != "UND" && $5 != "LOCAL" && $8 !~ /^(faultline_|cu[A-Z]|InitializeInjectionNvtx2$)/ {print $8}')
    for symbol in $shown; do say_no "it shows $symbol"; done
  fi
}

if [ $# -eq 0 ]; then set -- build/faultline build/libfaultline_dryrun.so build/capture/libcuda.so.1 build/vgpu/libfaultline_vgpu.so; fi
for binary in "$@"; do check "$binary"; done
[ $status -ne 0 ] || echo "runs on every x86-64 Linux with glibc $newest_allowed or later"
exit $status
