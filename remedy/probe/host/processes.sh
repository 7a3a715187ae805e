# --- processes, memory -----------------------------------------------------------------------------------

# Kernel threads are the children of 0 and 2 without group, session and terminal; the rest of the line is
# numbers, so that no process can name itself into being one.
processes() {
    stats=$(grep -aHsvE '\) [A-Z] [02] 0 0 0 -1 [0-9 -]*$' /proc/[0-9]*/stat)
    case $? in 137 | 143) stats= status=timeout ;; esac
    printf '%s\n' "$stats"
}

# Owner, cgroup and command line of those that are not daemons of every host, and not of this very session. One
# process for each question, none for each process.
process_details() {
    folders= owned= others= asked= details= adopted= limits= names=
    IFS=' ' read -r _ _ _ _ _ own_session _ </proc/$$/stat
    set -f
    IFS=$nl
    for line in $stats; do
        command=${line#*\(} command=${command%%\)*}
        numbers=${line#*') '}
        line=${line%%/stat:*}
        case ${line#/proc/} in '' | *[!0-9]*) continue ;; esac
        names="$names($command)${line#/proc/}$nl"
        folders=$folders$nl$line/fd
        case " $daemons " in *" $command "*) continue ;; esac
        unset IFS
        set -- $numbers
        IFS=$nl
        [ "$4" != "$own_session" ] || continue
        # Mostly they are of the user who asks, and a process to find that out is not needed.
        if [ -O "$line" ]; then owned="$owned$euid $line$nl"; else others=$others$nl$line; fi
        asked=$asked$nl$line/cgroup$nl$line/cmdline
        case $command in dockerd | containerd | kubelet | slurmd) asked=$asked$nl$line/limits ;; esac # see limits_of
    done
    set +f
    [ "$asked" ] || { unset IFS; absent 'only the usual daemons run'; return; }
    printf %s "$owned"
    set -- $others
    [ $# -eq 0 ] || stat -c '%u %n' "$@" 2>/dev/null </dev/null
    set -- $asked
    unset IFS
    # A file's path, then each of its lines with a colon in front: of the controllers of version 1 (cgroups(7)) only
    # systemd's own. Arguments are parted by tabs; what follows a name that looks like a secret is not sent.
    details=$(sed -n -s -e 1F -e "$as_lines" "$@" 2>/dev/null </dev/null)
    # That of busybox knows no -s.
    [ "$details" ] || details=$(grep -aHsv "$controllers" "$@" </dev/null | tr '\000\011' '\011 ')
    # By line: one may have a URL, and another the "@" of a unit.
    login=
    set -f
    IFS=$nl
    for line in $details; do
        case $line in *://*@*) login=yes; break ;; esac
    done
    unset IFS
    set +f
    if [ "$login" ] || hints_at_secret "$details"; then
        details=$(printf '%s\n' "$details" | sed "$hide_secrets")
    fi
    # Anybody may start many processes with 2 MiB of arguments each: that must not cost what comes after them.
    if [ "${#details}" -gt 2000000 ]; then
        details=$(printf '%s\n' "$details" | cut -b 1-2000 | head -c 2000000)
        [ "${#details}" -lt 2000000 ] || status=failed:1 detail='the command lines are longer than is read'
    fi
    printf '%s\n' "$details"
    find_adopted
}

# What systemd counts to somebody's login and PID 1 has adopted; and the limits of daemons.
find_adopted() {
    set -f
    IFS=$nl
    path=
    for line in $details; do
        case $line in
            :*) line=$path$line ;;
            */cgroup | */cmdline | */limits) path=$line; continue ;;
        esac
        case $line in
            /proc/*/limits:Max\ [lo]*) limits=$limits$nl$line; continue ;;
            */session-*.scope | */ssh.service | */sshd.service | */sshd@*.service) ;;
            *) continue ;;
        esac
        line=${line%%:*}
        case $line in */cgroup) ;; *) continue ;; esac
        line=${line%/cgroup}
        IFS= read -r numbers <"$line/stat" || continue
        case ${numbers##*') '} in [A-Z]' 1 '*) adopted="$adopted $line/fd/1 $line/fd/2" ;; esac
    done
    unset IFS
    set +f
}

# Where the output goes of what was adopted, and which pipes anybody reads. Looking at all open files costs, so
# only where there is such a process, and it writes to a pipe. Names of users are not asked for: NSS may start a
# daemon to know one.
process_outputs() {
    [ "$adopted" ] || { absent 'nothing was adopted'; return; }
    outputs=$(ls -ldn $adopted 2>/dev/null </dev/null)
    printf '%s\n' "$outputs"
    case $outputs in
        *'-> pipe:['*)
            IFS=$nl
            set -- $folders
            unset IFS
            ls -ln "$@" 2>/dev/null </dev/null |
                sed -n '/^lr.* -> pipe:\[/s/.* -> /reader /p'
            ;;
    esac
    printf 'end\n'
}

controllers='^[1-9][0-9]*:[a-z_,][a-z_,]*:/'
as_lines="\\|$controllers|d;y/\\x00\t/\t /;s/^/:/p"
hide_secrets="s/\\($edge$secret[=$tab]\\)[^$tab]*/\\1<redacted>/g
s,://[^/@ $tab]*@,://<redacted>@,g"

# ss would have the kernel load a module; where it is there, it is cheaper than the kernel's own table, for which
# all connections are walked through. Who has a socket open is found by its inode.
listeners() {
    sockets=
    IFS=$nl
    set -- $folders
    unset IFS
    if has ss && kernel_has tcp_diag; then
        # Of few processes ss finds the holders itself, of many find is quicker. For -e, which tells inodes, ss reads
        # all folders of all control groups, which costs more than all else that it does.
        [ $# -gt 64 ] || { limited ss -H -ltnp; return; }
        sockets=$(ss -H -ltne 2>/dev/null </dev/null)
        judge $?
        [ "$status" = ok ] || return
    else
        # What listens has no remote end.
        sockets=$(grep -aHs ':0000 0A ' /proc/net/tcp /proc/net/tcp6)
    fi
    [ "$sockets" ] || return
    printf '%s\n' "$sockets"
    inodes=
    IFS=$nl
    for line in $sockets; do
        case $line in
            *' ino:'*) line=${line#*' ino:'} line=${line%%' '*} ;;
            *)
                unset IFS
                # "number: local remote state queues timer retransmits uid timeout inode ..." (proc_net_tcp.rst)
                set -- ${line##*: }
                line=$9
                ;;
        esac
        case $line in '' | *[!0-9]*) continue ;; esac
        inodes="${inodes:+$inodes$nl}socket:[$line]"
    done
    set -- $folders
    unset IFS
    if [ "$inodes" ] && [ $# -gt 0 ]; then open_sockets "$@"; fi
}

# Each process's folder and which of $inodes it has open. The find of busybox has no -printf.
open_sockets() {
    sockets=$(find "$@" -maxdepth 1 -type l -printf '%h:%l\n' 2>/dev/null </dev/null | grep -F "$inodes")
    [ "$sockets" ] || sockets=$(ls -ln "$@" 2>/dev/null </dev/null |
        sed -n -e '/^.proc.[0-9]*.fd:$/p' -e 's/^l.* -> socket:/socket:/p')
    printf '%s\n' "$sockets"
}

shared_memory() {
    for path in /dev/shm/* /dev/shm/.[!.]*; do
        case $path in */libpod_lock | */libpod_rootless_lock_*) continue ;; esac # Podman's, on each host that has it
        [ ! -e "$path" ] || shm_files=yes
    done
    [ "$shm_files" ] || { absent 'no file'; return; }
    listing=$({
        find /dev/shm -xdev ! -name "*$nl*" ! -name libpod_lock ! -name 'libpod_rootless_lock_*' ! -type d \
            -exec stat -c '%d %i %s %b %u %g %f %Y %Z %h %n' {} + 2>/dev/null </dev/null
        printf 'end %s' "$?"
    } | head -c "$most")
    case $listing in
        "end "* | *"${nl}end "*) judge "${listing##*end }" ;;
        *) status=failed:1 detail='there are more files than are read' listing= ;;
    esac
    printf '%s\n' "${listing%end *}"
}

# Who maps or holds a file of /dev/shm, by device and inode: a bind mount elsewhere has another path. Reading
# every process's maps costs, so only where there are files. One line each: pid, inode.
shared_memory_holders() {
    [ "$shm_files" ] || { absent 'no file'; return; }
    device=$(stat -c %d /dev/shm)
    hex=$(printf '00:%02x' $(((device & 255) | ((device >> 12) & ~255))))
    {
        grep -aHs " $hex " /proc/[0-9]*/maps </dev/null |
            awk -v device="$hex" '$4 == device { split($1, part, "/"); print part[3], $5 }'
        find -L /proc/[0-9]*/fd -maxdepth 1 -type f -printf '%D %i %p\n' 2>/dev/null </dev/null |
            awk -v device="$device" '$1 == device { split($3, part, "/"); print part[3], $2 }'
        printf 'end\n'
    } | awk '!seen[$0]++'
}
