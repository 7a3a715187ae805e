# --- what runs already -----------------------------------------------------------------------------------

# A question must not start what it is about. Many clients have a daemon started by their socket or by D-Bus, or
# have the kernel load a module: docker, podman, firewall-cmd, hostnamectl, resolvectl; nft, iptables, ss,
# nvidia-smi. Such a client is called behind `runs` or `kernel_has` alone, and where a file says the same it is
# not called at all. docs/looking.md has the list.

# runs NAME: whether there is a process of this name (15 characters, as /proc/PID/stat has it), root's where the
# probe is root: who names himself dockerd has not started it. Sets $pid. After section process-details; 2 where
# the processes are not known.
runs() {
    [ "$names" ] || return 2
    case $names in *"($1)"*) ;; *) return 1 ;; esac
    IFS=$nl
    set -f
    for pid in $names; do
        case $pid in "($1)"*) pid=${pid#"($1)"} ;; *) continue ;; esac
        if [ -O "/proc/$pid" ] || [ ! -O /proc/1 ]; then
            unset IFS
            set +f
            return 0
        fi
    done
    unset IFS
    set +f
    return 1
}

# kernel_has MODULE: 0 where the kernel has this module now, or none can be loaded any more; 1 where it has not,
# so that nothing of its kind is in force; 2 where that is not known.
kernel_has() {
    [ -e /proc/modules ] || return 0
    [ ! -d "/sys/module/$1" ] || return 0
    modules_disabled=0
    read -r modules_disabled </proc/sys/kernel/modules_disabled
    [ "$modules_disabled" != 1 ] || return 0
    read -r release </proc/sys/kernel/osrelease
    built_in=/lib/modules/$release/modules.builtin
    [ -r "$built_in" ] || return 2
    ! grep -qs "/$1\.ko" "$built_in" || return 0
    return 1
}

# asks NAME: the same for a section that has something to say only then; fills status and detail otherwise.
asks() {
    runs "$1"
    case $? in
        0) return 0 ;;
        1) absent "$1 does not run" ;;
        *) status=failed:1 detail="whether $1 runs is not known, and asking could start it" ;;
    esac
    return 1
}

# asks_kernel MODULE: the same for a section that calls a client only then; fills status and detail otherwise.
asks_kernel() {
    kernel_has "$1"
    case $? in
        0) return 0 ;;
        1) absent "$1 is not loaded" ;;
        *) status=failed:1 detail="whether the kernel has $1 is not known, and asking could load it" ;;
    esac
    return 1
}

# The services for names of hosts (nsswitch.conf(5)) without those that a question would start; "" where all of
# them run. What does not run cannot answer, and the next service is asked as it would be then.
nss_services=
choose_name_services() {
    kept= dropped=
    while read -r database services; do
        [ "$database" = hosts: ] || continue
        services=${services%%"#"*} kept= dropped= action= asleep=
        for word in $services; do
            case $action$word in
                '['*)
                    [ "$asleep" ] || kept="$kept $word" # what follows a service is about that service
                    case $word in *']') action= ;; *) action='[' ;; esac
                    continue
                    ;;
            esac
            asleep=
            case $word in
                resolve | resolve'['*) daemon=systemd-resolve ;;
                mymachines | mymachines'['*) daemon=systemd-machine ;;
                mdns*) daemon=avahi-daemon ;;
                sss | sss'['*) daemon=sssd ;;
                *) daemon= ;;
            esac
            case $daemon in ?*) case $names in '' | *"($daemon)"*) ;; *) asleep=yes dropped=yes ;; esac ;; esac
            [ "$asleep" ] || kept="$kept $word"
        done
    done </etc/nsswitch.conf
    [ -z "$dropped" ] || nss_services=hosts:${kept:- files}
}
