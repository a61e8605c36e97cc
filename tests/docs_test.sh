#!/bin/sh
# SPDX-License-Identifier: MIT
# The documents name what is there: each relative link leads to a file, and to a heading of it where it names one, and
# docs/options.md has the options as the tool prints them. First it proves that it would notice.
#
#     sh tests/docs_test.sh SOURCE_DIRECTORY BUILD_DIRECTORY
set -eu
source=$1
tool=$2/bin/tamiz

# A document without its blocks of code.
prose() {
    awk '/^ *```/ { code = !code; next } !code' "$1"
}

# What a heading is called in a link to it, one a line.
anchors() {
    prose "$1" | sed -n 's/^#\{1,6\} *//p' | tr 'A-Z' 'a-z' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

links() (
    cd "$1"
    find . -name build -prune -o -name '.?*' -prune -o -name '*.md' -print | sort | while read -r document; do
        prose "$document" | grep -o ']([^)]*)' | sed 's/^](//; s/)$//' | sort -u | while read -r link; do
            case $link in *:*) continue ;; esac
            target=$(dirname "$document")/${link%%#*}
            [ "${link%%#*}" ] || target=$document
            if [ ! -e "$target" ]; then
                echo "$document: $link: there is no such file"
            elif [ "$link" != "${link#*#}" ] && ! anchors "$target" | grep -qxF -e "${link#*#}"; then
                echo "$document: $link: there is no such heading"
            fi
        done
    done
)

# The lines between the marks of docs/options.md in $1, and what the tool prints.
options() {
    awk '/<!-- \/options -->/ { on = 0 } on && !/^```/; /<!-- options -->/ { on = 1 }' "$1" >"$house/written"
    "$tool" options >"$house/printed"
    diff "$house/written" "$house/printed"
}

house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT
mkdir "$house/a"
echo '# Some heading, and more' >"$house/a/there.md"
failed=0

# expect noticed|fine TEXT
expect() {
    printf '%s\n' "$2" >"$house/a/b.md"
    [ "$(links "$house/a")" ] && said=noticed || said=fine
    [ "$said" = "$1" ] || { echo "docs: '$2': want $1, got $said"; failed=1; }
}

expect fine '[x](there.md) and [y](there.md#some-heading-and-more) and [z](https://example.org/x.md)'
expect noticed '[x](nowhere.md)'
expect noticed '[x](there.md#another-heading)'
expect noticed 'two in a line: [x](there.md), [y](nowhere.md)'
rm -r "$house/a"
sed 's/size_ratio         10/size_ratio         11/' "$source/docs/options.md" >"$house/other.md"
if options "$house/other.md" >"$house/said"; then
    echo "docs: a default that is not the tool's was not noticed"
    failed=1
fi
[ "$failed" = 0 ] || exit 1

found=$(links "$source")
[ -z "$found" ] || { echo "$found"; failed=1; }
options "$source/docs/options.md" || { echo "docs/options.md (<) is not what tamiz options prints (>)"; failed=1; }
exit "$failed"
