# --- what is about to change this host by itself ---------------------------------------------------------

# A run of remedy that is at work, and a guarded change that waits for its confirmation. Nothing is started where
# there is neither. /var/lib/remedy is for root alone; timers and processes are for everybody to see.
guards() {
    root=/var/lib/remedy
    read -r boot </proc/sys/kernel/random/boot_id
    printf 'now %s %s\n' "$up" "$boot"
    for timer in /run/systemd/transient/remedy-guard-*.timer; do
        [ ! -e "$timer" ] || printf 'timer %s\n' "${timer##*/}"
    done
    [ -d "$root" ] || return 0
    [ -x "$root" ] || { printf 'closed\n'; return 0; }
    [ ! -L "$root/owner" ] || lock_owner
    [ ! -e "$root/pending" ] || pending_guard
    [ -z "$heads_of" ] || [ ! -e "$root/heads" ] || last_head
}

# Which record of the controller's journal came last when this host was changed (apply/heads.py). Of few lines, as
# there mostly are, the shell looks at each; $heads_of has one pattern or two, and "^" is the begin of a line.
last_head() {
    head= rows=0
    while IFS= read -r line || [ "$line" ]; do
        rows=$((rows + 1))
        if [ "$rows" -gt 20 ]; then
            head=$(sed -n -E "/$heads_of/h;\${x;p;}" "$root/heads") || return 0
            break
        fi
        case ^$line in *"${heads_of%%|*}"* | *"${heads_of#*|}"*) head=$line ;; esac
    done <"$root/heads"
    [ -z "$head" ] || printf 'head %s\n' "$head"
}

# TOKEN RUN BOOT-ID PID START SINCE BY (apply/host/lock.sh), and when the process with that number was started.
lock_owner() {
    owner=$(readlink "$root/owner") || return 0
    printf 'owner %s\n' "$owner"
    set -f
    set -- $owner
    set +f
    case ${4-} in '' | *[!0-9]*) return 0 ;; esac
    { read -r stat <"/proc/$4/stat"; } 2>/dev/null || return 0
    set -- ${stat##*\) }
    printf 'started %s\n' "${20-}"
}

# The run, when its timer fires (apply/host/guard.sh), what it takes back, and whether anything is there to do it.
pending_guard() {
    { read -r run; read -r fires; } <"$root/pending"
    printf 'pending %s\nfires %s\n' "$run" "$fires"
    case $run in '' | *[!A-Za-z0-9-]*) return 0 ;; esac
    count=0
    while [ "$count" -lt 20 ] && IFS= read -r title; do
        printf 'takes %s\n' "$title"
        count=$((count + 1))
    done <"$root/runs/$run/guarded"
    if [ -L "/run/systemd/units/invocation:remedy-guard-$run.service" ] ||
        grep -qs "runs/$run/guar[d]" /proc/[0-9]*/cmdline; then
        printf 'process\n'
    fi
}
