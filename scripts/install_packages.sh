#!/bin/sh
# install_packages.sh PACKAGE...: installs the Debian packages that are not there yet. Nothing is asked of sudo or of the network when nothing is missing.
set -u
if ! command -v dpkg-query >/dev/null; then
  echo "This is not a Debian system, so nothing is installed here; what these packages hold must be there: $*" >&2
  exit 0
fi
missing=
for package; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "These Debian packages are missing and only root can install them, as there is no sudo here: apt-get install$missing" >&2
    exit 1
  fi
  as_root=sudo
fi
cannot() {
  echo "These Debian packages are missing and could not be installed: apt-get install$missing" >&2
  exit 1
}
$as_root true || cannot
echo "installing:$missing"
quietly() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 "$@" >/dev/null; }
quietly update || true  # a source of packages that does not answer may not be the one that is needed
quietly install -y --no-install-recommends $missing || cannot
