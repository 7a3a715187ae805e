# --- the machine -----------------------------------------------------------------------------------------

clock() {
    epoch=$(date +%s.%N)
    booted=$((${epoch%.*} - ${up%.*}))
    printf '%s\n' "$epoch"
}

# What the shell can see without starting anything.
session() {
    printf 'pid %s\npath %s\n' "$$" "$login_path"
    for program in $programs; do
        if has "$program"; then
            printf 'program %s ' "$program"
            command -v "$program"
        fi
    done
    IFS=$nl
    for directory in $homes; do printf 'home %s\n' "$directory"; done
    for path in $presence; do
        [ ! -e "$path" ] || printf 'present %s\n' "$path"
    done
    for path in /sys/class/infiniband/*/device/net/* /sys/bus/pci/drivers/vfio-pci/*:*; do
        [ ! -e "$path" ] || printf 'present %s\n' "$path"
    done
    unset IFS
}

# every_line FILE...: of all the files, each line with its file's path in front.
every_line() {
    grep -aHs '' "$@" </dev/null
    judge $?
    case $status in failed:[12]) status=ok ;; esac # a file that is not there
}

kernel() {
    IFS=$nl
    set -- $kernel_files
    unset IFS
    grep -aHs '' "$@"
}

links() {
    IFS=$nl
    set -- $link_files
    unset IFS
    every_line "$@"
}

rdma() {
    [ -e /sys/class/infiniband ] || { absent 'no RDMA device'; return; }
    IFS=$nl
    set -- $rdma_files
    unset IFS
    guarded "$tool_limit" grep -aHs '' "$@"
}

virtualization() {
    if [ -r /run/systemd/container ]; then
        read -r kind </run/systemd/container
        printf '%s\n' "$kind"
    elif has systemd-detect-virt; then
        limited systemd-detect-virt
        [ "$status" != failed:1 ] || status=ok # prints "none"
    else
        status=missing detail='systemd-detect-virt is not installed'
    fi
}

# What systemd would say, from its own files: asking it costs 15 ms here and as much in PID 1. A unit has its
# invocation link exactly as long as it is active.
service_units() {
    [ -d /run/systemd/system ] || { absent 'systemd does not run this host'; return; }
    [ -d /run/systemd/units ] || { status=missing detail='this systemd is older than version 237'; return; }
    limited_units= unit_folders=
    for directory in /etc /run /usr/local/lib /usr/lib /lib; do
        [ "$directory" != /lib ] || [ ! -L /lib ] || continue # that of /usr
        [ ! -d "$directory/systemd/system" ] || unit_folders="$unit_folders $directory/systemd/system"
    done
    for unit in $units; do
        load=not-found active=inactive
        for directory in $unit_folders; do
            [ -e "$directory/$unit" ] || continue
            load=loaded
            [ ! -L "$directory/$unit" ] || load=alias
            # A link to /dev/null; that in /run is gone after a boot.
            [ ! -c "$directory/$unit" ] || [ "$directory" = /run/systemd/system ] || load=masked
            break
        done
        if [ -L "/run/systemd/units/invocation:$unit" ]; then
            active=active
            [ "$load" != alias ] || load=loaded # linked under its own name
            case " $limit_units " in *" $unit "*) limits_of "$unit" ;; esac
        fi
        printf 'unit %s %s %s\n' "$unit" "$load" "$active"
    done
    for link in /etc/systemd/system/*.wants/*.service /etc/systemd/system/*.requires/*.service \
        /run/systemd/generator/*.wants/*.service \
        /usr/lib/systemd/system/*.wants/*.service; do
        [ ! -L "$link" ] || printf 'wanted %s\n' "$link"
    done
    [ -z "$limited_units" ] ||
        grep -aHsE '^Max (locked memory|open files) ' $limited_units
}

# What the service runs with, from the kernel: its process is named as the unit, docker's dockerd. Section
# process-details has mostly read it.
limits_of() {
    main=${1%.service}
    [ "$main" != docker ] || main=dockerd
    runs "$main" || return
    printf 'main %s %s\n' "$1" "$pid"
    known=
    set -f
    IFS=$nl
    for line in $limits; do
        case $line in
            "/proc/$pid/limits:Max locked memory "* | "/proc/$pid/limits:Max open files "*)
                printf '%s\n' "$line"
                known=yes
                ;;
        esac
    done
    unset IFS
    set +f
    [ "$known" ] || limited_units="$limited_units /proc/$pid/limits"
}

# The process whose environment the ssh command was started with: sudo's own where it came through sudo, which
# hands on another one.
login_process() {
    source=$$ process=$PPID
    for _ in 1 2 3 4 5; do
        read -r _ command _ above _ <"/proc/$process/stat" || return
        case $command in
            '(sudo)' | '(doas)') source=$process ;;
            '(timeout)' | '(env)' | '(sh)' | '(dash)' | '(bash)') ;;
            *) return ;;
        esac
        process=$above
    done
}

# Secrets stay on the host.
environment() {
    login_process
    [ -r "/proc/$source/environ" ] || { status=failed:1 detail='it may not be read'; return; }
    variables=$(tr '\000' '\n' <"/proc/$source/environ")
    judge $?
    kept= told= session_libraries= session_file=
    set -f
    IFS=$nl
    for line in $variables; do
        name=${line%%=*}
        case $line in "$name") continue ;; esac
        case $name in
            '' | [0-9]* | *[!A-Za-z0-9_]*) continue ;;
        esac
        # Every session has this one, whose name says to sed that it is a password.
        case $name in PWD) line='PWD=<redacted>' ;; *) told="$told$name=$nl" ;; esac
        case $name in
            LD_LIBRARY_PATH) session_libraries=${line#*=} ;;
            BASH_ENV) session_file=${line#*=} ;;
        esac
        hide_logins
        kept=$kept$nl$line
    done
    set +f
    unset IFS
    kept=${kept#"$nl"}
    ! hints_at_secret "$told" || kept=$(printf '%s\n' "$kept" | sed "s/^\\($secret=\\).*/\\1<redacted>/")
    printf '%s\n' "$kept"
}

# hints_at_secret TEXT: 1 where no name in it can be that of a secret. What finds out which costs ten times as much.
hints_at_secret() {
    [ "${#1}" -lt 4000 ] || return 0
    set -f
    for hint in $secret_hints; do
        case "$1 " in *$hint*) set +f; return 0 ;; esac
    done
    set +f
    return 1
}

# Take what stands before @ out of every URL of $line.
hide_logins() {
    rest=$line line=
    while :; do
        case $rest in *://*@*) ;; *) break ;; esac
        line=$line${rest%%://*}://
        rest=${rest#*://}
        login=${rest%%[/@ ]*}
        case ${rest#"$login"} in @*) line="$line<redacted>" rest=${rest#"$login"} ;; esac
    done
    line=$line$rest
}

# mounts_itself PATH: whether systemd would mount something there for whoever looks (systemd.automount(5)), as
# with /boot often.
mounts_itself() {
    unit=${1#/}
    case $unit in */*) unit=${unit%/*}-${unit##*/} ;; esac
    [ -L "/run/systemd/units/invocation:$unit.automount" ] && [ ! -L "/run/systemd/units/invocation:$unit.mount" ]
}

space() {
    IFS=$nl
    set --
    for path in $file_systems; do
        mounts_itself "$path" || set -- "$@" "$path"
    done
    unset IFS
    stat -f -c '%T %S %b %f %a %c %d %n' "$@" </dev/null
    judge $?
    [ "$status" != failed:1 ] || status=ok
}
