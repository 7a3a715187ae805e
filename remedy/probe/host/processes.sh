# --- processes, memory -----------------------------------------------------------------------------------

# Kernel threads are the children of 0 and 2 without group, session and terminal; the rest of the line is
# numbers, so that no process can name itself into being one.
processes() {
    stats=$(grep -aHsvE '\) [A-Z] [02] 0 0 0 -1 [0-9 -]*$' /proc/[0-9]*/stat)
    printf '%s\n' "$stats"
}

# Owner, cgroup and command line of those that are not daemons of every host, and not of this very session.
process_details() {
    chosen= details= adopted=
    IFS=' ' read -r _ _ _ _ _ own_session _ </proc/$$/stat
    set -f
    IFS=$nl
    for line in $stats; do
        command=${line#*\(}
        command=${command%\)*}
        case " $daemons " in *" $command "*) continue ;; esac
        numbers=${line##*\) ? }
        numbers=${numbers#* }
        numbers=${numbers#* }
        [ "${numbers%% *}" != "$own_session" ] || continue
        numbers=${line##*\) ? }
        line=${line%%/stat:*}
        case $numbers in '1 '*) ! in_login "$line/cgroup" || adopted="$adopted $line/fd/1 $line/fd/2" ;; esac
        chosen=$chosen$nl$line
        details=$details$nl$line/cgroup$nl$line/cmdline
    done
    set +f
    set -- $chosen
    [ $# -gt 0 ] || { unset IFS; absent 'only the usual daemons run'; return; }
    unset IFS
    stat -c '%u %n' "$@" 2>/dev/null </dev/null
    IFS=$nl
    set -- $details
    unset IFS
    # Arguments are parted by tabs; what follows a name that looks like a secret is not sent.
    grep -aHs '' "$@" </dev/null | tr '\000\011' '\011 ' | sed "$hide_secrets"
}

# Whether systemd counts a process to somebody's login.
in_login() {
    while IFS= read -r group; do
        case $group in */session-*.scope | */ssh.service | */sshd.service | */sshd@*.service) return 0 ;; esac
    done <"$1"
    return 1
}

# Where the output goes of what PID 1 has adopted from a login, and which pipes anybody reads. Looking at all
# open files costs, so only where there is such a process, and it writes to a pipe.
process_outputs() {
    [ "$adopted" ] || { absent 'nothing was adopted'; return; }
    outputs=$(ls -ld $adopted 2>/dev/null </dev/null)
    printf '%s\n' "$outputs"
    case $outputs in
        *'-> pipe:['*)
            ls -l /proc/[0-9]*/fd 2>/dev/null </dev/null |
                sed -n '/^lr.* -> pipe:\[/s/.* -> /reader /p'
            ;;
    esac
    printf 'end\n'
}

hide_secrets="/^.proc.[0-9]*.cgroup:/{/cgroup:0::/!{/name=systemd:/!d}}
s/\([Tt][Oo][Kk][Ee][Nn]\|[Ss][Ee][Cc][Rr][Ee][Tt]\|[Pp][Aa][Ss][Ss][Ww]\|[Kk][Ee][Yy]\)\([A-Za-z0-9_-]*[=$tab]\)[^$tab]*/\1\2<redacted>/g
s,://[^/@ $tab]*@,://<redacted>@,g"

shared_memory() {
    set -- /dev/shm/* /dev/shm/.[!.]*
    [ -e "$1" ] || shift
    [ -e "$1" ] || shift
    [ $# -gt 0 ] || { absent 'no file'; return; }
    limited find /dev/shm -xdev ! -name "*$nl*" ! -type d \
        -exec stat -c '%d %i %s %b %u %g %f %Y %Z %h %n' {} +
    shm_files=yes
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
