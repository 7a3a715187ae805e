# What runs on a host to carry changes out, or to take them back. POSIX sh, as root, nothing installed.
#
# Set before this text: RUN, NONCE, ROOT (/var/lib/remedy), LOG (/var/log/remedy.jsonl), BY, and HEAD, the
# controller's last record, where it has one; RUN and BY need no escaping in JSON. After it comes one function,
# main, and its call: a connection that breaks on the way leaves a script that does nothing.
# One line a change goes to standard output: NONCE ID STATUS [DETAIL in base64].
#   done     the change was made, and looked at afterwards
#   already  the host was in the planned state
#   stale    the object is no longer what the plan was made for; nothing was touched
#   failed   it was tried and is not right; DETAIL says why
#   skipped  an earlier change of this host did not succeed
# Order: every object is compared with the plan and every pre-image is on disk before the first write.

# What the shell can do itself it does: most of what a small change costs a host is starting processes.

umask 077
cd /
LC_ALL=C
export LC_ALL
# A connection that breaks after the start must not end the script between two writes.
trap '' HUP PIPE
DIR=$ROOT/runs/$RUN
SAID=$DIR/.said # not among what settle flushes
ENDED=
nl='
'

say() { # id status [detail]
    if [ -n "${PLAIN-}" ]; then
        printf '%s %s %s %s\n' "$NONCE" "$1" "$2" "${3-}"
    elif [ -n "${3-}" ]; then
        printf '%s %s %s %s\n' "$NONCE" "$1" "$2" "$(printf %s "$3" | base64 | tr -d '\n')"
    else
        printf '%s %s %s\n' "$NONCE" "$1" "$2"
    fi
}

# The time of day: asked for once, and counted on by the kernel's uptime.
set_clock() {
    set -- $(date -u '+%Y-%m-%d %H %M %S')
    day=$1 began=$((${2#0} * 3600 + ${3#0} * 60 + ${4#0}))
    read -r up _ </proc/uptime
    began=$((began - ${up%.*}))
}

two() { TWO=$1; [ "$1" -gt 9 ] || TWO=0$1; } # a number in two digits

look_at_clock() { # sets `time`, RFC 3339
    read -r up _ </proc/uptime
    second=$((began + ${up%.*}))
    [ "$second" -lt 86400 ] || { set_clock; second=$((began + ${up%.*})); } # midnight has passed
    two $((second / 3600))
    time=${day}T$TWO
    two $((second / 60 % 60))
    time=$time:$TWO
    two $((second % 60))
    time=$time:${TWO}Z
}

receipt() { # id state
    printf '{"time":"%s","run":"%s","change":"%s","state":"%s","by":"%s"}\n' "$time" "$RUN" "$1" "$2" "$BY"
}

note() { # id state
    look_at_clock
    receipt "$1" "$2" >>"$DIR/receipt.jsonl" || return 1
    [ -n "${log_chosen-}" ] || choose_log
    { receipt "$1" "$2" >>"$LOG"; } 2>/dev/null || :
}

# What a command said that failed; a full disk has no room for that either.
said() { cat "$SAID" 2>/dev/null | grep . || room "$DIR"; }

# What could not be written into the folder of the run, why, and what room it has.
unwritten() { # name
    first_line_of "$SAID"
    give_up "$DIR/$1 cannot be written${LINE:+ (${LINE##*: })}: $(room "$DIR")"
}

# Why a folder takes nothing, in words: its file system is read-only, or has too few blocks or inodes.
room() { # folder
    # shellcheck disable=SC2046 # words: device, blocks, used, free, share, and where it is mounted
    set -- "$1" $(df -Pk "$1" 2>/dev/null | tail -n 1)
    [ $# -gt 6 ] || { printf 'df knows no file system of %s' "$1"; return; }
    mode=
    # The last that is mounted there is the one that is seen.
    while read -r _ place _ options _; do
        [ "$place" != "$7" ] || mode=,$options,
    done </proc/self/mounts
    case $mode in *,ro,*) printf 'the file system at %s is mounted read-only' "$7"; return ;; esac
    # shellcheck disable=SC2046 # words, as before
    set -- "$5" "$7" $(df -Pi "$1" 2>/dev/null | tail -n 1)
    printf 'free in the file system at %s: %s KB; inodes: %s' "$2" "$1" "${6:-not known}"
}

# fsync files and folders; a sync that takes no names (busybox) flushes everything instead.
flush() { sync -- "$@" 2>/dev/null || sync; }

SUMS=$nl # of files that were measured, as sha256sum prints them
digest() { # path; sets SUM: sha256, or "absent"
    SUM=absent
    [ -e "$1" ] || return 0
    case $SUMS in
    *"  $1$nl"*)
        SUM=${SUMS%%"  $1$nl"*}
        SUM=${SUM##*"$nl"}
        case $SUM in *[!0-9a-f]*) ;; *) return 0 ;; esac # else a name that ends as this one does
        ;;
    esac
    SUM=$(sha256sum <"$1") || return 1
    SUM=${SUM%% *}
}

leads_to() { # path; sets REAL: where it leads, through all links
    REAL=${1%/*}
    # What is in a folder that is not there leads nowhere yet.
    [ -e "${REAL:-/}" ] || { REAL=$1; return; }
    if [ ! -L "$1" ] && cd -P "${REAL:-/}" 2>/dev/null; then
        REAL=${PWD%/}/${1##*/}
        cd /
    else
        REAL=$(readlink -f -- "$1") || REAL=$1
    fi
}

first_line_of() { # file; sets LINE, empty where there is no such file
    LINE=
    [ ! -e "$1" ] || read -r LINE <"$1" || :
}

give_up() {
    say - refused "$1"
    exit "${STRICT:-0}"
}
