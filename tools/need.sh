# SPDX-License-Identifier: MIT
# Read by demo.sh and test.sh: installs what is missing, and says so first. Nothing is run here.
#
#     need PACKAGES...     on Debian and Ubuntu: installs those that are missing; elsewhere: nothing
#     wish PACKAGES...     the same, but goes on where they cannot be had
#     need_build           elsewhere: checks that compiler, cmake and libraries are there, names what is not

has_apt() { command -v apt-get >/dev/null 2>&1 && command -v dpkg-query >/dev/null 2>&1; }

missing_of() {
    for package in "$@"; do
        state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) || state=
        [ "$state" = "install ok installed" ] || printf '%s ' "$package"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    else
        echo "Not root, and there is no sudo. As root: $*" >&2
        return 1
    fi
}

apt_lists_are_fresh=no
install_packages() {
    if [ "$apt_lists_are_fresh" = no ]; then
        as_root apt-get -qq update || return 1
        apt_lists_are_fresh=yes
    fi
    as_root apt-get -qq -y --no-install-recommends install "$@" >/dev/null
}

need() {
    has_apt || return 0
    missing=$(missing_of "$@")
    [ -n "$missing" ] || return 0
    echo "Missing, to be installed: $missing"
    # shellcheck disable=SC2086 # a list of words
    install_packages $missing || { echo "Could not install: $missing" >&2; exit 3; }
}

wish() {
    has_apt || return 0
    missing=$(missing_of "$@")
    [ -n "$missing" ] || return 0
    echo "Missing, to be installed if it can be had: $missing"
    # shellcheck disable=SC2086
    install_packages $missing || echo "Going on without: $missing"
}

need_build() {
    has_apt && return 0
    lacking=
    for program in cc cmake ninja pkg-config ld objcopy; do
        command -v "$program" >/dev/null 2>&1 || lacking="$lacking $program"
    done
    for library in libxxhash libzstd "$@"; do
        pkg-config --exists "$library" 2>/dev/null || lacking="$lacking $library(with headers)"
    done
    [ -z "$lacking" ] && return 0
    echo "This system has no apt-get. Please install, by its own means:$lacking" >&2
    exit 3
}
