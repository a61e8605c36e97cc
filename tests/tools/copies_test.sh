#!/bin/sh
# SPDX-License-Identifier: MIT
# Checkpoint, backup and restore as the tool does them, on a real disk.
set -eu
tamiz=$(cd "$2" && pwd)/bin/tamiz
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

wants() { # WANT GOT
    [ "$1" = "$2" ] || { echo "wanted: $1"; echo "got:    $2"; exit 1; }
}

seq 1 1000 | "$tamiz" load store - >/dev/null
"$tamiz" flush store
"$tamiz" put store tail log
"$tamiz" checkpoint store copy
wants 1001 "$("$tamiz" scan copy --count)"
wants log "$("$tamiz" get copy tail)"
for table in store/*.sst; do
    [ "$table" -ef "copy/${table#store/}" ] || { echo "$table is no link"; exit 1; }
done
"$tamiz" verify copy >/dev/null
rc=0; "$tamiz" checkpoint store copy 2>words || rc=$?
wants 2 $rc
grep -q 'something stands here already' words

"$tamiz" backup store backups >said
grep -q 'backup 1 made: 1 tables copied and verified' said
seq 1001 2000 | "$tamiz" load store - >/dev/null
"$tamiz" flush store
"$tamiz" --json backup store backups >said
grep -q '"number":2,"tables_kept":1,"tables_copied":1' said || { cat said; exit 1; }
"$tamiz" restore backups first --number 1 >/dev/null
"$tamiz" restore backups second >said
grep -q 'backup 2 restored: 2 tables' said
wants 1001 "$("$tamiz" scan first --count)"
wants 2001 "$("$tamiz" scan second --count)"
rm -r backups/000001
"$tamiz" restore backups third >/dev/null
wants 2001 "$("$tamiz" scan third --count)"
wants 2001 "$("$tamiz" scan backups/000002 --count)"
rc=0; "$tamiz" restore backups fourth --number 1 2>words || rc=$?
wants 3 $rc
grep -q 'no such backup' words

# Two keyspaces: copies have both, each apart, and tables say whose they are.
"$tamiz" put --keyspace people store 17 Ada
seq 1 50 | "$tamiz" load --keyspace people store - >/dev/null
"$tamiz" flush --keyspace people store
"$tamiz" put --keyspace people store tail log
"$tamiz" checkpoint store both
"$tamiz" backup store more >/dev/null
"$tamiz" restore more again >/dev/null
for copy in both again; do
    wants 2001 "$("$tamiz" scan "$copy" --count)"
    wants "$("$tamiz" scan --keyspace people store --count)" "$("$tamiz" scan --keyspace people "$copy" --count)"
    wants log "$("$tamiz" get --keyspace people "$copy" tail)"
    "$tamiz" verify "$copy" >/dev/null
done
said=0
for table in again/*.sst; do
    if "$tamiz" dump "$table" | grep -q 'keyspace_name.*people'; then said=$((said + 1)); fi
done
wants 1 "$said"
"$tamiz" keyspace drop store people
wants 2001 "$("$tamiz" scan store --count)"
wants log "$("$tamiz" get --keyspace people both tail)"
echo "checkpoint, backup, restore: fine"
