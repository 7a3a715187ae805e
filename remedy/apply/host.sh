# What runs on a host to carry changes out, or to take them back. POSIX sh, as root, nothing installed.
#
# Set before this text: RUN, NONCE, ROOT (/var/lib/remedy), LOG (/var/log/remedy.jsonl), BY, and HEAD, the
# controller's last record, where it has one; RUN and BY need no escaping in JSON. After it comes one function,
# main, and its call: a connection that breaks on the way leaves a script that does nothing.
# One line a change goes to standard output: NONCE ID STATUS [DETAIL in base64].
#   done     the change was made, and looked at afterwards
#   already  the host was in the wanted state
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
SAID=$DIR/said
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
    { receipt "$1" "$2" >>"$LOG"; } 2>/dev/null || :
}

# What a command said that failed; a full disk has no room for that either.
said() { cat "$SAID" 2>/dev/null | grep . || df -P "$DIR" 2>&1 | tail -n 1; }

# fsync files and folders; a sync that takes no names (busybox) flushes everything instead.
flush() { sync -- "$@" 2>/dev/null || sync; }

digest() { # path; sets SUM: sha256, or "absent"
    SUM=absent
    [ ! -e "$1" ] || SUM=$(sha256sum <"$1") || return 1
    SUM=${SUM%% *}
}

leads_to() { # path; sets REAL: where it leads, through all links
    REAL=${1%/*}
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

begin() {
    say - begun
    for tool in base64 sha256sum readlink; do
        command -v "$tool" >/dev/null || give_up "the host has no $tool"
    done
    [ -z "${DRY-}" ] || return 0
    known=
    [ ! -d "$ROOT" ] || known=1
    error=$(mkdir -p "$DIR/pre" "$DIR/new" 2>&1) || give_up "$error"
    # What is made anew is its owner's alone, by the umask.
    [ -z "$known" ] || chmod 700 "$ROOT" "$ROOT/runs" "$DIR"
    first_line_of "$ROOT/pending"
    [ -z "$LINE" ] || give_up "LOCKED run $LINE waits for its confirmation, or for its timer to take it back"
    set_clock
    take
    heal
    [ -z "${HEAD-}" ] || printf '%s\n' "$HEAD" >>"$ROOT/heads"
    note - begun || give_up "$ROOT cannot be written: $(df -P "$ROOT" 2>/dev/null | tail -n 1)"
}

# --- the lock: one run at a time, from any controller -------------------------------------------------
#
# The kernel's lock, where there is flock, is free again when its owner is dead. The link "owner" is made in one
# step and says who it is: TOKEN RUN BOOT-ID PID START SINCE BY. A token is of one script alone; each step looks
# whether it is still the owner's, so a script that lost the lock (remedy unlock) makes no further step.

me() {
    look_at_clock
    read -r boot </proc/sys/kernel/random/boot_id
    started $$
    TOKEN=$NONCE-$$
    MINE="$TOKEN $RUN $boot $$ $START $time $BY"
}

take() {
    me
    kernel=
    if command -v flock >/dev/null; then
        exec 9>>"$ROOT/lock"
        flock -n 9 || give_up "LOCKED $(who)"
        kernel=1
    fi
    if ! ln -s "$MINE" "$ROOT/owner" 2>/dev/null; then
        # shellcheck disable=SC2046 # words
        [ -n "$kernel" ] || ! alive $(readlink "$ROOT/owner") || give_up "LOCKED $(who)"
        dead=$(readlink "$ROOT/owner")
        # Of two that find a dead owner, one makes this folder.
        find "$ROOT" -maxdepth 1 -name 'dead.*' -mmin +1 -exec rmdir {} + 2>/dev/null
        mkdir "$ROOT/dead.${dead%% *}" 2>/dev/null || give_up "LOCKED another run takes over from a dead one"
        disown
        error=$(ln -s "$MINE" "$ROOT/owner" 2>&1) || give_up "LOCKED $(who) $error"
        rmdir "$ROOT/dead.${dead%% *}"
    fi
    : >"$ROOT/token.$TOKEN"
    trap release EXIT
}

# The token is a file as well: the shell looks at that without starting a process.
owned() { [ -L "$ROOT/owner" ] && [ -e "$ROOT/token.$TOKEN" ]; }

disown() { rm -f "$ROOT/owner" "$ROOT"/token.*; }

release() { ! owned || disown; }

# Set START to when a process was started, in ticks since the boot (proc_pid_stat(5)), "" where there is none: a
# number that is used again has another.
started() {
    START=
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    # shellcheck disable=SC2086 # words, after the name, which may hold blanks
    set -- ${stat##*) }
    START=${20-}
}

alive() { # token run boot pid start ...
    read -r boot </proc/sys/kernel/random/boot_id
    started "${4-}"
    [ "${3-}" = "$boot" ] && [ -n "$START" ] && [ "$START" = "${5-}" ]
}

who() {
    # shellcheck disable=SC2046 # words
    set -- $(readlink "$ROOT/owner")
    if [ $# -lt 6 ]; then
        printf 'a process of remedy that takes changes back or has just begun'
    elif alive "$@"; then
        printf 'run %s by %s since %s (process %s is at work)' "$2" "${7-}" "$6" "$4"
    else
        printf 'run %s by %s since %s (its process is dead)' "$2" "${7-}" "$6"
    fi
}

give_up() {
    say - refused "$1"
    exit "${STRICT:-0}"
}

# Keep a content on the host: name below $DIR, text; store64 takes it in base64.
store() {
    { printf %s "$2" >"$DIR/$1"; } 2>"$SAID" || give_up "$DIR/$1 cannot be written: $(said)"
}

store64() {
    { printf %s "$2" | base64 -d >"$DIR/$1"; } 2>"$SAID" || give_up "$DIR/$1 cannot be written: $(said)"
}

# Make the pre-image of a change ready to be put back: its run, its id, and the digest it is known by.
restore() {
    [ ! -e "$ROOT/runs/$1/pre/$2" ] || cp -p -- "$ROOT/runs/$1/pre/$2" "$DIR/new/$3"
}

# Whether a run ever began to make a change. What it did not make is not taken back. Without a receipt nobody can
# tell: then it is looked whether all is as it was before, and nothing is made.
took() { # run id undo-id
    if [ ! -e "$ROOT/runs/$1/receipt.jsonl" ]; then
        BLIND=$1
        return 0
    fi
    grep -qF "\"change\":\"$2\",\"state\":\"started\"" "$ROOT/runs/$1/receipt.jsonl" && return 0
    say "$3" already
    return 1
}

# --- files: file_check, then file_do; $4 and $5 are digests, or "absent" -----------------------------

# Compare with the plan and keep the pre-image. 0: to do, 1: refuse, 2: nothing to do.
file_check() { # id path real before after
    leads_to "$2"
    if [ "$REAL" != "$3" ]; then
        say "$1" stale "$2 leads to $REAL now, not to $3"
        return 1
    fi
    digest "$REAL" || { say "$1" failed "$REAL cannot be read"; return 1; }
    if [ "$SUM" != "$4" ]; then
        if [ "$SUM" = "$5" ]; then
            return 2
        fi
        written=$(stat -c 'last written %y by uid %u, %s bytes' -- "$REAL" 2>/dev/null)
        say "$1" stale "$REAL was changed ${SINCE:-since the plan was made}: expected sha256 $4, found $SUM${written:+, $written}"
        return 1
    fi
    [ "$SUM" = absent ] || [ -n "${DRY-}" ] || cp -p -- "$REAL" "$DIR/pre/$1" 2>"$SAID" ||
        { say "$1" failed "pre-image: $(said)"; return 1; }
}

# The folders whose entries were changed; they are flushed together at the end. Cut off before that, a host
# has the one file or the other, whole.
FOLDERS=

file_do() { # id path real before after mode
    if [ "$5" != absent ] && [ ! -e "$DIR/new/$5" ]; then
        say "$1" failed "the content for $3 is not on the host: its pre-image was removed"
        return 1
    fi
    if [ "$5" = absent ]; then
        digest "$3"
        if [ "$SUM" != "$4" ]; then
            changed=$SUM
        else
            changed=
            rm -f -- "$3" 2>"$SAID" || { say "$1" failed "$(said)"; return 1; }
        fi
    else
        put "$3" "$6" "$DIR/new/$5" "$5" "$4" >"$SAID" 2>&1 || { say "$1" failed "$(said)"; return 1; }
    fi
    if [ -n "$changed" ]; then
        say "$1" stale "$3 was changed while this run was at work (sha256 $changed)"
        return 1
    fi
    folder=${3%/*}
    FOLDERS=$FOLDERS${folder:-/}$nl
}

# Make $1 hold the bytes of $3, whose sha256 is $4, keeping owner, mode, label and links; $2: mode if new.
# $5, if given, is the digest that it still has to have; when it has another one, that is left in `changed`
# and nothing is done.
put() {
    changed=
    folder=${1%/*}
    [ -d "${folder:-/}" ] || mkdir -p -m 755 -- "$folder" || return 1
    temp=$folder/.remedy.$RUN.$$
    printf '%s\n' "$temp" >"$ROOT/temps"
    old=
    [ ! -e "$1" ] || old=$1
    # The name is taken first, by this run alone; whoever may put a link there cannot lead it elsewhere.
    [ -n "$old" ] || [ "$2" != 644 ] || umask 022
    set -C
    true >"$temp"
    taken=$?
    set +C
    umask 077
    [ "$taken" = 0 ] || return 1
    # A copy has the attributes; its bytes are then replaced.
    if [ -n "$old" ]; then
        cp -p --preserve=all -- "$old" "$temp" 2>/dev/null || cp -p -- "$old" "$temp"
    else
        [ "$2" = 644 ] || chmod "$2" "$temp"
    fi && cat -- "$3" >"$temp" && flush "$temp" && sums=$(sha256sum "$temp" ${old:+"$old"}) ||
        { rm -f -- "$temp"; return 1; }
    now=${sums%% *}
    if [ "${now#\\}" != "$4" ]; then # a name with odd characters is told by a backslash
        rm -f -- "$temp"
        echo "the new content could not be written beside $1; is the disk full?"
        return 1
    fi
    now=absent
    if [ -n "$old" ]; then
        now=${sums##*"$nl"}
        now=${now%% *}
        now=${now#\\}
    fi
    if [ "$now" != "${5:-$now}" ]; then
        rm -f -- "$temp"
        changed=$now
        return 0
    fi
    links=1
    [ -z "$old" ] || links=$(stat -c %h -- "$1" 2>/dev/null || echo 1)
    if [ "$links" = 1 ] && mv -f -- "$temp" "$1" 2>/dev/null; then
        : >"$ROOT/temps"
        return 0
    fi
    # A second hard link, or a mount point of its own: a rename would cut it off, so write in place. Whoever comes
    # after a crash in the middle of that finds what is to be completed.
    printf '%s\n' "$1" "$3" "$4" >"$ROOT/inplace"
    flush "$3" "$ROOT/inplace" "$ROOT"
    error=$(cat -- "$temp" 2>&1 >"$1") || error="${error:-$1 cannot be written}"
    rm -f -- "$temp"
    [ -z "$error" ] || { echo "$error"; return 1; }
    flush "$1"
    rm -f -- "$ROOT/inplace"
    : >"$ROOT/temps"
    digest "$1"
    [ "$SUM" = "$4" ] || { echo "$1 holds something else after the write ($SUM)"; return 1; }
}

# What a run that was killed left: temporary files go, and a write in place that it began is completed. That is
# only done while the file holds the beginning of what was to be written, which nobody else would have put there.
heal() {
    if [ -s "$ROOT/temps" ]; then
        while IFS= read -r temp; do
            case ${temp##*/} in .remedy.?*) rm -f -- "$temp" ;; esac
        done <"$ROOT/temps"
        : >"$ROOT/temps"
    fi
    [ -e "$ROOT/inplace" ] || return 0
    { IFS= read -r real && IFS= read -r whole && IFS= read -r want; } <"$ROOT/inplace" || want=
    if [ -n "$want" ] && [ -e "$real" ] && digest "$whole" && [ "$SUM" = "$want" ]; then
        size=$(stat -c %s -- "$real")
        digest "$real"
        if [ "$SUM" != "$want" ] &&
            [ "$(head -c "$size" -- "$whole" | sha256sum)" = "$(sha256sum <"$real")" ]; then
            cat -- "$whole" >"$real" || give_up "$real was left half-written by a run that was killed, and cannot be completed"
            flush "$real"
            note - healed
            SINCE="just now: a run that was killed had left it half-written, and that was completed; run the command again"
        fi
    fi
    rm -f -- "$ROOT/inplace"
}

# --- commands: command_check, then command_do ---------------------------------------------------------

command_check() { # id observe before after
    now=$(eval "$2" 2>/dev/null </dev/null 9>&-)
    [ "$now" != "$4" ] || return 2
    if [ "$now" != "$3" ]; then
        say "$1" stale "expected $3, found $now"
        return 1
    fi
    [ -z "${DRY-}" ] || return 0
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

# Make a file's new content from the one that was checked: `splice ID DIGEST [OFFSET LENGTH NAME]...`; LENGTH bytes
# go at each OFFSET, and those that the plan gave under NAME come, "-" for none.
splice() {
    case "$CHECKED " in *" $1 "*) ;; *) return 0 ;; esac
    id=$1
    after=$2
    shift 2
    at=0
    {
        while [ $# -gt 0 ]; do
            if [ "$at" = 0 ] && [ "$1" != 0 ]; then
                head -c "$1" -- "$DIR/pre/$id"
            elif [ "$1" != "$at" ]; then
                tail -c "+$((at + 1))" -- "$DIR/pre/$id" | head -c "$(($1 - at))"
            fi
            [ "$3" = - ] || cat -- "$DIR/new/$3"
            at=$(($1 + $2))
            shift 3
        done
        tail -c "+$((at + 1))" -- "$DIR/pre/$id"
    } >"$DIR/whole" 2>/dev/null
    digest "$DIR/whole"
    if [ "$SUM" != "$after" ] || ! mv -f -- "$DIR/whole" "$DIR/new/$after"; then
        say "$id" failed "the new content could not be made in $DIR; is the disk full?"
        ENDED=1
        rest=
        for one in $CHECKED; do
            [ "$one" = "$id" ] || rest="$rest $one"
        done
        CHECKED=$rest
    fi
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
    if [ -n "${BLIND-}" ]; then
        say "$1" failed "the host has no receipt of run $BLIND, so it cannot tell what that run did"
        ENDED=1
    elif ! owned; then
        say "$1" failed "the lock of this run was taken away, so it makes no further change"
        ENDED=1
    elif ! note "$1" started; then
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
    first_line_of "$ROOT/pending"
    [ "$LINE" = "$RUN" ] || exit 0
    set_clock
    # The run that armed this timer has ended, or hangs without the lock: this one goes before it.
    me
    disown
    ln -s "$MINE" "$ROOT/owner"
    : >"$ROOT/token.$TOKEN"
    trap release EXIT
    heal
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
    set_clock
    first_line_of "$ROOT/pending"
    if [ "$LINE" = "$RUN" ]; then
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
    if [ -n "${DRY-}" ]; then
        say - finished
        return 0
    fi
    note - ended || :
    rm -f "$SAID"
    IFS=$nl
    set -f
    set -- $FOLDERS
    set +f
    unset IFS
    flush "$DIR/receipt.jsonl" "$@"
    say - finished
    # Whoever only looks at the exit status (plain pyinfra) asks for it with STRICT=1.
    [ -z "$ENDED" ] || exit "${STRICT:-0}"
}
