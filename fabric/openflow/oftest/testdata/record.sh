#!/bin/sh
# Records what a real Open vSwitch answers to the scripts of this package's tests. It starts an ovsdb-server and an
# ovs-vswitchd with a dummy datapath in a directory of their own: without root, kernel module or network.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
export OVS_RUNDIR="$dir" OVS_LOGDIR="$dir" OVS_DBDIR="$dir"
pids=
trap 'kill $pids 2>/dev/null || true; rm -rf "$dir"' EXIT
ovsdb-tool create "$dir/conf.db" /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server "$dir/conf.db" --remote="punix:$dir/db.sock" --log-file="$dir/db.log" & pids=$!
for _ in $(seq 100); do [ -S "$dir/db.sock" ] && break; sleep 0.1; done
db="unix:$dir/db.sock"
ovs-vsctl --db="$db" --no-wait init
ovs-vswitchd "$db" --enable-dummy=override --disable-system --unixctl="$dir/vswitchd.ctl" --log-file="$dir/vswitchd.log" & pids="$pids $!"
ovs-vsctl --db="$db" add-br br0 -- set bridge br0 datapath_type=dummy protocols=OpenFlow13 fail_mode=secure \
	other_config:datapath-id=00000000000000a1 other_config:hwaddr=\"aa:55:aa:55:00:ff\"
for n in 1 2 3 4; do # one after the other: the dummy datapath numbers their addresses
	ovs-vsctl --db="$db" add-port br0 p$n -- set interface p$n type=dummy ofport_request=$n
done
ovs-vsctl --db="$db" set-controller br0 "unix:$dir/c1.sock" "unix:$dir/c2.sock"
for c in $(ovs-vsctl --db="$db" get bridge br0 controller | tr -d '[],'); do
	ovs-vsctl --db="$db" set controller "$c" max_backoff=1000 inactivity_probe=0
done
go test -count=1 -run '^TestReplay$' . -record "$dir"
