#!/usr/bin/env bash
# scripts/release/check_binary.sh [BINARY]: does the binary run on every x86-64 Linux with glibc 2.35 or later?
# It may need nothing but glibc's own libraries, and no symbol of glibc newer than that. Prints what it needs; fails with the reason.
set -euo pipefail
binary=${1:-build/faultline}
newest_allowed=2.35
allowed_libraries='^(libc\.so\.6|libm\.so\.6|ld-linux-x86-64\.so\.2|linux-vdso\.so\.1)$'

[ -f "$binary" ] || { echo "$binary is not there; build it with: make build" >&2; exit 2; }
command -v readelf >/dev/null || { echo "readelf is missing; it comes with binutils" >&2; exit 2; }
status=0
say_no() { echo "NOT PORTABLE: $1"; status=1; }

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
[ $status -ne 0 ] || echo "runs on every x86-64 Linux with glibc $newest_allowed or later"
exit $status
