# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Packages of other Debian suites and architectures than the host's. The scripts that unpack them source this file. All
# files lie below $DUET_SCRATCH and are kept between runs.
set -euo pipefail

scratch=${DUET_SCRATCH:-/var/tmp/duet-matrix}
mkdir -p "$scratch"
exec 9>"$scratch/lock" # one at a time: scripts that use the same suite share an apt
flock 9

# All suites that this host knows have the same archive.
archive() {
	cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
		sed -nE -e 's/^URIs:[ ]*([^ ]+).*/\1/p' -e 's/^deb +(\[[^]]*\] +)?([^ ]+).*/\2/p' | grep -m 1 /debian
}

# Makes an apt with its own folders and new lists. It neither reads nor changes what is installed on this host. The
# archive may be a snapshot whose lists have expired. Its folder is $apt; the packages are downloaded to $apt/debs.
open_apt() { # SUITE ARCHITECTURE
	apt=$scratch/apt-$1-$2
	rm -rf "$apt/debs"
	mkdir -p "$apt"/etc/apt/{apt.conf.d,preferences.d,trusted.gpg.d} "$apt/var/lib/apt/lists/partial" \
		"$apt/debs/partial" "$apt/var/lib/dpkg"
	: >"$apt/var/lib/dpkg/status"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(archive) $1 main" \
		>"$apt/etc/apt/sources.list"
	cat >"$apt/apt.conf" <<-END
		Dir "$apt";
		Dir::State::status "$apt/var/lib/dpkg/status";
		Dir::Cache::Archives "$apt/debs";
		APT::Architecture "$2";
		APT::Architectures "$2";
		APT::Install-Recommends "false";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::Check-Valid-Until "false";
		Acquire::Check-Date "false";
	END
	export APT_CONFIG=$apt/apt.conf
	apt-get -qq update
}

# Download to $apt/debs: the packages alone, or with all packages that they depend on.
download() { # PACKAGE...
	(cd "$apt/debs" && apt-get -qq download "$@")
}

download_with_dependencies() { # PACKAGE...
	apt-get -qq -y --download-only install "$@"
}

# No maintainer script runs.
unpack() { # FOLDER
	local package
	for package in "$apt"/debs/*.deb; do
		dpkg-deb -x "$package" "$1"
	done
	rm -rf "$apt/debs"
}
