# What runs on a host to carry changes out, or to take them back. POSIX sh, as root, nothing installed.
#
# Set before this text: RUN, NONCE, ROOT (/var/lib/remedy), LOG (/var/log/remedy.jsonl), BY, and HEAD, the
# controller's last record, where it has one. After it comes one function, main, and its call: a connection that breaks on the way leaves a script that does nothing.
# One line a change goes to standard output: NONCE ID STATUS [DETAIL in base64].
#   done     the change was made, and looked at afterwards
#   already  the host was in the wanted state
#   stale    the object is no longer what the plan was made for; nothing was touched
#   failed   it was tried and is not right; DETAIL says why
#   skipped  an earlier change of this host did not succeed
# Order: every object is compared with the plan and every pre-image is on disk before the first write.

umask 077
LC_ALL=C
export LC_ALL
# A connection that breaks after the start must not end the script between two writes.
trap '' HUP PIPE
DIR=$ROOT/runs/$RUN
ENDED=

say() { # id status [detail]
    if [ -n "${PLAIN-}" ]; then
        printf '%s %s %s %s\n' "$NONCE" "$1" "$2" "${3-}"
    elif [ -n "${3-}" ]; then
        printf '%s %s %s %s\n' "$NONCE" "$1" "$2" "$(printf %s "$3" | base64 | tr -d '\n')"
    else
        printf '%s %s %s\n' "$NONCE" "$1" "$2"
    fi
}

# Text becomes part of a JSON line here, so it is limited to what needs no escaping.
plain() { printf %s "$1" | tr -cd 'A-Za-z0-9 ._:/@+=-'; }

note() { # id state
    line=$(printf '{"time":"%s","run":"%s","change":"%s","state":"%s","by":"%s"}' \
        "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$RUN" "$1" "$2" "$(plain "$BY")")
    printf '%s\n' "$line" >>"$DIR/receipt.jsonl" || return 1
    { printf '%s\n' "$line" >>"$LOG"; } 2>/dev/null || :
}

# fsync files and folders; a sync that takes no names (busybox) flushes everything instead.
flush() { sync -- "$@" 2>/dev/null || sync; }

digest_of() { # path -> sha256, or "absent"
    if [ -e "$1" ]; then
        sum=$(sha256sum <"$1") || return 1
        printf %s "${sum%% *}"
    else
        printf absent
    fi
}

begin() {
    say - begun
    for tool in base64 sha256sum readlink mktemp; do
        command -v "$tool" >/dev/null || give_up "the host has no $tool"
    done
    error=$(mkdir -p "$DIR/pre" "$DIR/new" 2>&1) || give_up "$error"
    chmod 700 "$ROOT" "$ROOT/runs" "$DIR"
    waiting=$(cat "$ROOT/pending" 2>/dev/null)
    [ -z "$waiting" ] || give_up "LOCKED run $waiting waits for its confirmation, or for its timer to take it back"
    if command -v flock >/dev/null; then
        exec 9>>"$ROOT/lock"
        flock -n 9 || give_up "LOCKED $(cat "$ROOT/holder" 2>/dev/null)"
        printf 'run %s by %s since %s\n' "$RUN" "$BY" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$ROOT/holder"
    fi
    [ -z "${HEAD-}" ] || printf '%s\n' "$HEAD" >>"$ROOT/heads"
    note - begun || give_up "$ROOT cannot be written: $(df -P "$ROOT" 2>/dev/null | tail -n 1)"
}

give_up() {
    say - refused "$1"
    exit "${STRICT:-0}"
}

# Keep a content on the host: name below $DIR, base64.
store() {
    error=$({ printf %s "$2" | base64 -d >"$DIR/$1"; } 2>&1) || give_up "$DIR/$1 cannot be written: $error"
}

# Make the pre-image of a change ready to be put back: its id, and the digest it is known by.
restore() {
    [ ! -e "$DIR/pre/$1" ] || cp -p -- "$DIR/pre/$1" "$DIR/new/$2"
}

# --- files: file_check, then file_do; $4 and $5 are digests, or "absent" -----------------------------

# Compare with the plan and keep the pre-image. 0: to do, 1: refuse, 2: nothing to do.
file_check() { # id path real before after
    real=$(readlink -f -- "$2") || real=$2
    if [ "$real" != "$3" ]; then
        say "$1" stale "$2 leads to $real now, not to $3"
        return 1
    fi
    now=$(digest_of "$real") || { say "$1" failed "$real cannot be read"; return 1; }
    if [ "$now" != "$4" ]; then
        if [ "$now" = "$5" ]; then
            return 2
        fi
        say "$1" stale "$real was changed since the plan was made (sha256 $now)"
        return 1
    fi
    if [ "$now" != absent ]; then
        error=$(cp -p -- "$real" "$DIR/pre/$1" 2>&1) || { say "$1" failed "pre-image: $error"; return 1; }
    fi
}

file_do() { # id path real before after mode
    real=$3
    now=$(digest_of "$real")
    if [ "$now" != "$4" ]; then
        say "$1" stale "$real was changed while this run was at work (sha256 $now)"
        return 1
    fi
    if [ "$5" = absent ]; then
        error=$(rm -f -- "$real" 2>&1) || { say "$1" failed "$error"; return 1; }
    else
        error=$(put "$real" "$6" "$DIR/new/$5" "$5" 2>&1) || { say "$1" failed "$error"; return 1; }
    fi
    flush "$(dirname -- "$real")"
    now=$(digest_of "$real")
    [ "$now" = "$5" ] || { say "$1" failed "$real holds something else after the write ($now)"; return 1; }
}

# Make $1 hold the bytes of $3, whose sha256 is $4, keeping owner, mode, label and links; $2: mode if new.
put() {
    folder=$(dirname -- "$1")
    [ -d "$folder" ] || mkdir -p -m 755 -- "$folder" || return 1
    temp=$(mktemp "$folder/.remedy.XXXXXX") || return 1
    if [ -e "$1" ]; then
        # A copy has the attributes; its bytes are then replaced.
        cp -p --preserve=all -- "$1" "$temp" 2>/dev/null || cp -p -- "$1" "$temp" || { rm -f -- "$temp"; return 1; }
    else
        chmod "$2" "$temp"
    fi
    if ! { cat -- "$3" >"$temp" && [ "$(digest_of "$temp")" = "$4" ]; }; then
        rm -f -- "$temp"
        echo "the new content could not be written beside $1; is the disk full?"
        return 1
    fi
    flush "$temp"
    links=$(stat -c %h -- "$1" 2>/dev/null || echo 1)
    if [ "$links" = 1 ] && mv -f -- "$temp" "$1" 2>/dev/null; then
        return 0
    fi
    # A second hard link, or a mount point of its own: a rename would cut it off, so write in place. The
    # pre-image is on disk already.
    error=$(cat -- "$temp" 2>&1 >"$1") || error="${error:-$1 cannot be written}"
    rm -f -- "$temp"
    [ -z "$error" ] || { echo "$error"; return 1; }
    flush "$1"
}

# --- commands: command_check, then command_do ---------------------------------------------------------

command_check() { # id observe before after
    now=$(eval "$2" 2>/dev/null </dev/null 9>&-)
    [ "$now" != "$4" ] || return 2
    if [ "$now" != "$3" ]; then
        say "$1" stale "expected $3, found $now"
        return 1
    fi
    printf %s "$now" >"$DIR/pre/$1"
}

command_do() { # id observe before after do
    error=$(eval "$5" 2>&1 </dev/null 9>&-) || { say "$1" failed "$error"; return 1; }
    now=$(eval "$2" 2>/dev/null </dev/null 9>&-)
    [ "$now" = "$4" ] || { say "$1" failed "after the command: $now, wanted: $4. $error"; return 1; }
}

# --- one change: first all are checked, then each is made ---------------------------------------------

# CHECKED collects what is to do. A host with one stale object is not touched at all.
CHECKED=
check() { # kind id args...
    kind=$1
    shift
    "${kind}_check" "$@"
    case $? in
    0) CHECKED="$CHECKED $1" ;;
    2) say "$1" already ;;
    *) ENDED=1 ;;
    esac
}

# After the checks and before the first change: what undoing needs is on disk, all of it at once. A file that
# waits for its own fsync costs a commit of the file system's journal each.
settle() {
    [ -n "$CHECKED" ] || return 0
    set -- "$DIR"/pre/*
    [ -e "$1" ] || shift
    [ ! -e "$ROOT/heads" ] || set -- "$@" "$ROOT/heads"
    flush "$@" "$DIR"/* "$DIR"
}

make() { # kind id args...
    kind=$1
    shift
    case "$CHECKED " in
    *" $1 "*) ;;
    *) return 0 ;;
    esac
    if [ -n "$ENDED" ]; then
        say "$1" skipped
        return 0
    fi
    if ! note "$1" started; then
        say "$1" failed "the receipt cannot be written, so the change was not made"
        ENDED=1
    elif "${kind}_do" "$@"; then
        note "$1" done
        say "$1" done
    else
        note "$1" failed
        ENDED=1
    fi
}

# --- the guard: what can cut the connection is taken back unless a new connection confirms it ----------

# Nothing here calls `systemctl daemon-reload`: it can take the GPUs away from running containers
# (NVIDIA/nvidia-container-toolkit issue 48). A transient timer and a link in a .wants folder need none.
UNITS=/etc/systemd/system
BOOT_UNIT=remedy-guard.service

# Arm the timer, before the first change: `arm SECONDS STRICT ID...`; only if one of the IDs is to be made.
arm() {
    seconds=$1
    strict=$2
    shift 2
    wanted=
    for id in "$@"; do
        case "$CHECKED " in *" $id "*) wanted=1 ;; esac
    done
    [ -n "$wanted" ] && [ -z "$ENDED" ] || return 0
    printf '%s\n' "$RUN" >"$ROOT/pending" && flush "$DIR/guard" "$ROOT/pending" || give_up "$ROOT/pending cannot be written"
    if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; then
        mkdir -p "$UNITS/multi-user.target.wants"
        printf '[Unit]\nDescription=Take back an unconfirmed change of remedy\n[Service]\nType=oneshot\nExecStart=/bin/sh %s\n' \
            "$DIR/guard" >"$UNITS/$BOOT_UNIT"
        chmod 644 "$UNITS/$BOOT_UNIT"
        ln -sf "$UNITS/$BOOT_UNIT" "$UNITS/multi-user.target.wants/$BOOT_UNIT"
        flush "$UNITS/$BOOT_UNIT"
        error=$(systemd-run --quiet --on-active="${seconds}s" --timer-property=AccuracySec=500ms \
            --unit="remedy-guard-$RUN" /bin/sh "$DIR/guard" 2>&1 9>&-) || { unguard; give_up "no timer: $error"; }
    elif [ -n "$strict" ]; then
        unguard
        give_up "without systemd nothing on this host outlives a broken connection for certain"
    else
        # A process of its own session; a reboot is not covered.
        setsid sh -c 'sleep "$1"; exec sh "$2"' guard "$seconds" "$DIR/guard" </dev/null >/dev/null 2>&1 9>&- &
    fi
    note - armed
    say - armed
}

unguard() {
    rm -f "$ROOT/pending" "$UNITS/multi-user.target.wants/$BOOT_UNIT" "$UNITS/$BOOT_UNIT"
}

# What the timer runs: wait for a run that is still at work, then take back unless it was confirmed.
guard_begin() {
    say - begun
    if command -v flock >/dev/null; then
        exec 9>>"$ROOT/lock"
        flock 9
    fi
    [ "$(cat "$ROOT/pending" 2>/dev/null)" = "$RUN" ] || exit 0
    note - reverting || :
}

guard_end() {
    unguard
    note - reverted || :
}

# What the controller runs over a new connection: reaching this line is the proof that it can.
confirm() {
    if command -v flock >/dev/null; then
        exec 9>>"$ROOT/lock"
        flock -w 20 9 || give_up "the run is still at work"
    fi
    if [ "$(cat "$ROOT/pending" 2>/dev/null)" = "$RUN" ]; then
        unguard
        flush "$ROOT"
        [ ! -d /run/systemd/system ] || systemctl stop "remedy-guard-$RUN.timer" 2>/dev/null || :
        note - confirmed || :
        say - confirmed
    else
        say - reverted
    fi
}

finish() {
    note - ended || :
    flush "$DIR/receipt.jsonl"
    say - finished
    # Whoever only looks at the exit status (plain pyinfra) asks for it with STRICT=1.
    [ -z "$ENDED" ] || exit "${STRICT:-0}"
}
