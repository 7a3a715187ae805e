#!/bin/sh
# Boots one lab host, and boots it again whenever it asks for a reboot.
#
#   boot.sh FOLDER SWITCH NETNS NSPAWN...
#
# FOLDER holds what the host is made of (see remedy/lab/host.py), SWITCH and NETNS are network namespaces,
# NSPAWN... is the command that boots the host. The exit status is that of the host's last boot.
set -u

if [ "$1" = --inside ]; then
    # In a mount namespace of its own: the overlay is gone with the last process of the host, however it ends.
    folder=$2
    shift 2
    while read -r group; do
        mkdir -p "$group" && echo $$ >"$group/cgroup.procs"
    done <"$folder/cgroups"
    mount -t overlay -o "$(cat "$folder/overlay")" overlay "$folder/root" || exit 1
    exec "$@"
fi

folder=$1 switch=$2 netns=$3
shift 3

if [ ! -s "$folder/cgroups" ] && [ -e /sys/fs/cgroup/cgroup.procs ]; then
    # In a unit that systemd has delegated. A group with groups in it may hold no process, so this one moves
    # aside and the host gets a group without a stranger.
    unit=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
    mkdir "$unit/loop" && echo $$ >"$unit/loop/cgroup.procs"
    echo "$unit/host" >"$folder/cgroups"
fi

while :; do
    # A new namespace at each boot: rules, sysctls and addresses that were only live are gone, as on a real machine.
    ip netns del "$netns" 2>/dev/null
    ip netns add "$netns"
    # -force: at the first boot there is no old link to remove.
    ip -force -netns "$switch" -batch "$folder/switch.batch"
    ip -netns "$netns" -batch "$folder/host.batch"
    unshare --mount --propagation slave sh "$0" --inside "$folder" "$@"
    status=$?
    # systemd-nspawn says by 133 that the host wants to be booted again.
    [ "$status" -eq 133 ] || exit "$status"
done
