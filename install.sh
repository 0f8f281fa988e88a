#!/bin/sh
# Installs `cog` and `cogn` for the current user: downloads an archive, compares its checksum, and copies both programs and the
# documentation, which `cog docs` opens.
#
#   sh install.sh
#
# COG_INSTALL_DIR      the directory of the programs (default: ~/.local/bin); the documentation goes to share/cog next to it
# COG_INSTALL_VERSION  the version (default: that of the release with this script)
# COG_INSTALL_URL      where the archives and SHA256SUMS are; {version} is replaced
set -eu

# A release replaces both defaults.
url=${COG_INSTALL_URL:-@URL@}
version=${COG_INSTALL_VERSION:-@VERSION@}

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

# The name of this platform in the names of archives.
platform() {
  case $(uname -s)/$(uname -m) in
    Linux/x86_64 | Linux/amd64) echo linux-x86_64 ;;
    Linux/aarch64 | Linux/arm64) echo linux-arm64 ;;
    Darwin/x86_64) echo macos-x86_64 ;;
    Darwin/arm64) echo macos-arm64 ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m); see docs/install.md for other ways" ;;
  esac
}

require() {
  for tool in "$@"; do
    command -v "$tool" >/dev/null || fail "$tool is needed, and was not found"
  done
}

download() {
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1"
  else
    fail 'curl or wget is needed, and neither was found'
  fi || fail "cannot download $1"
}

checksum() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1"
  elif command -v shasum >/dev/null; then
    shasum -a 256 "$1"
  else
    fail 'sha256sum or shasum is needed, and neither was found'
  fi
}

# A running program cannot be written, but it can be replaced. A link to it costs no space.
put() {
  ln "$1" "$2.new" 2>/dev/null || cp "$1" "$2.new"
  chmod 755 "$2.new"
  mv -f "$2.new" "$2"
}

# The programs work without the documentation. An older version of it is of no use.
put_docs() {
  share=$(cd "$2/.." && pwd)/share/cog
  mkdir -p "$share" && rm -rf "$share"/cog-*-docs && cp -R "$1" "$share/cog-$version-docs" ||
    printf 'install.sh: cannot install the documentation in %s\n' "$share" >&2
}

# Nothing runs before the whole script has arrived.
main() {
  case $url in @*) fail 'this script is not of a release: set COG_INSTALL_URL' ;; esac
  case $version in @*) fail 'this script is not of a release: set COG_INSTALL_VERSION' ;; esac
  require uname mktemp tar gzip awk sed
  version=${version#v}
  url=$(printf '%s' "$url" | sed "s|{version}|$version|g")
  to=${COG_INSTALL_DIR:-${HOME:?}/.local/bin}
  platform=$(platform) || exit 1
  name="cog-$version-$platform"

  directory=$(mktemp -d)
  trap 'rm -rf "$directory"' EXIT
  trap 'exit 1' HUP INT TERM
  download "$url/$name.tar.gz" "$directory/archive"
  download "$url/SHA256SUMS" "$directory/SHA256SUMS"
  expected=$(awk -v name="$name.tar.gz" '$2 == name { print $1 }' "$directory/SHA256SUMS")
  [ -n "$expected" ] || fail "SHA256SUMS does not list $name.tar.gz; nothing was installed"
  found=$(checksum "$directory/archive") || exit 1
  found=${found%% *}
  [ "$found" = "$expected" ] || fail "the checksum of $name.tar.gz is $found, not $expected; nothing was installed"

  tar -xzf "$directory/archive" -C "$directory"
  # A program that does not start here is not installed.
  installed=$("$directory/$name/cog" --version) || fail "$name does not start on this machine; nothing was installed"
  mkdir -p "$to"
  put "$directory/$name/cog" "$to/cog"
  put "$to/cog" "$to/cogn"
  put_docs "$directory/$name/docs" "$to"
  printf 'Installed %s in %s.\n' "$installed" "$to"
  case ":$PATH:" in
    *":$to:"*) ;;
    *) printf 'Add %s to PATH.\n' "$to" ;;
  esac
}

main
