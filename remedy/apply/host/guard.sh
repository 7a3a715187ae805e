# --- the guard: what can cut the connection is taken back unless a new connection confirms it ----------

# Nothing here calls `systemctl daemon-reload`: it can take the GPUs away from running containers
# (NVIDIA/nvidia-container-toolkit issue 48). A transient timer and a link in a .wants folder need none.
UNITS=/etc/systemd/system
BOOT_UNIT=remedy-guard.service

by_systemd() { [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; }

# Whether one of the changes ID... is to be made.
waited_for() {
    [ -z "$ENDED" ] || return 1
    for id; do
        case "$CHECKED " in *" $id "*) return 0 ;; esac
    done
    return 1
}

# Before settle, which has it on the disk: what takes back at the next boot. It comes before the mark that something
# is to be taken back, so that no crash leaves the mark without it: nothing but a person would remove that.
watch() { # id...
    waited_for "$@" && by_systemd || return 0
    roots "$UNITS/multi-user.target.wants/$BOOT_UNIT" >/dev/null || give_up "$WHY"
    umask 022
    [ -d "$UNITS/multi-user.target.wants" ] || mkdir -p "$UNITS/multi-user.target.wants"
    printf '[Unit]\nDescription=Take back an unconfirmed change of remedy\n[Service]\nType=oneshot\nExecStart=/bin/sh %s\n' \
        "$DIR/guard" >"$UNITS/$BOOT_UNIT"
    umask 077
    ln -sf "$UNITS/$BOOT_UNIT" "$UNITS/multi-user.target.wants/$BOOT_UNIT"
}

# Arm the timer, before the first change: `arm SECONDS STRICT ID...`; only if one of the IDs is to be made.
arm() {
    seconds=$1
    strict=$2
    shift 2
    waited_for "$@" || { [ ! -e "$UNITS/$BOOT_UNIT" ] || disarm; return 0; }
    if by_systemd; then
        error=$(systemd-run --quiet --on-active="${seconds}s" --timer-property=AccuracySec=500ms \
            --unit="remedy-guard-$RUN" /bin/sh "$DIR/guard" 2>&1 9>&-) || { unguard; give_up "no timer: $error"; }
    elif [ -n "$strict" ]; then
        unguard
        give_up "this host has no systemd, so no timer on it is sure to survive a broken connection or a reboot"
    else
        # A process of its own session; a reboot is not covered.
        setsid sh -c 'sleep "$1"; exec sh "$2"' guard "$seconds" "$DIR/guard" </dev/null >/dev/null 2>&1 9>&- &
    fi
    # The second line is for a probe: when the timer fires, by the uptime of this boot.
    read -r up _ </proc/uptime
    printf '%s\n%s %s\n' "$RUN" "$((${up%.*} + seconds + 1))" "$boot" >"$ROOT/pending" && flush "$ROOT/pending" "$ROOT" ||
        { unguard; give_up "$ROOT/pending cannot be written"; }
    note - armed
    say - armed
}

# The mark goes first, so that no crash leaves it without what takes back.
unguard() { rm -f "$ROOT/pending" "$UNITS/multi-user.target.wants/$BOOT_UNIT" "$UNITS/$BOOT_UNIT"; }

# Whoever takes back or confirms before the timer fires leaves no timer that somebody would wait for.
stop_timer() { [ ! -d /run/systemd/system ] || systemctl stop "remedy-guard-$RUN.timer" 2>/dev/null || :; }

disarm() { rm -f "$UNITS/multi-user.target.wants/$BOOT_UNIT" "$UNITS/$BOOT_UNIT"; }

# Whether something on this host is going to take back what a run did, or is at it: its timer, or its guard.
waits() { # run
    systemctl is-active --quiet "remedy-guard-$1.timer" 2>/dev/null && return 0
    grep -qs "runs/$1/guar[d]" /proc/[0-9]*/cmdline
}

# Where nothing is any more, because that was killed as well, the next run does it.
unattended() { # run
    ! waits "$1" || return 1
    sh "$ROOT/runs/$1/guard" >/dev/null 2>&1
    [ ! -e "$ROOT/pending" ]
}

# What the timer runs: wait for a run that is still at work, then take back unless it was confirmed.
guard_begin() {
    say - begun
    lock wait
    first_line_of "$ROOT/pending"
    if [ "$LINE" != "$RUN" ]; then
        # The run was cut off before it had changed anything: only what would have taken it back is here.
        ! grep -qF "$DIR/guard" "$UNITS/$BOOT_UNIT" 2>/dev/null || disarm
        exit 0
    fi
    set_clock
    # The run that armed this timer has ended, or hangs without the lock: this one goes before it.
    me
    disown
    ln -s "$MINE" "$ROOT/owner"
    command : >"$ROOT/token.$TOKEN"
    trap release EXIT
    heal
    note - reverting || :
}

# What sshd read at its start it has to read again before somebody comes anew: only then does a new login show what is
# in its files. Those that it does not accept it is spared, and no confirmation follows (`confirm`).
reread() { # id...: of the changes of such files
    for id; do
        case "$MADE " in *" $id "*) ;; *) continue ;; esac
        rm -f "$DIR/refused"
        listener || return 0
        if error=$("$SSHD" -t 2>&1 </dev/null 9>&-); then
            read_anew
        else
            printf '%s\n' "sshd does not accept its files: ${error:-sshd -t fails}" >"$DIR/refused"
        fi
        return 0
    done
}

listener() { # sets PID and SSHD: the process that takes connections, and its program
    for file in /run/sshd.pid /var/run/sshd.pid; do
        first_line_of "$file"
        ! is_sshd "$LINE" || return 0
    done
    file=
    for unit in ssh sshd; do
        ! is_sshd "$(systemctl show -p MainPID --value "$unit.service" 2>/dev/null)" || return 0
    done
    return 1
}

is_sshd() { # pid
    PID=$1
    SSHD=$(readlink "/proc/${PID:-none}/exe")
    SSHD=${SSHD% (deleted)}
    case $SSHD in */sshd) ;; *) return 1 ;; esac
}

# It makes its process file anew once it listens (sshd.c, sighup_restart).
read_anew() {
    former=$(stat -c '%i %z' -- "$file" 2>/dev/null)
    kill -HUP "$PID"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        sleep 0.1
        [ ! -s "$file" ] || [ "$(stat -c '%i %z' -- "$file" 2>/dev/null)" = "$former" ] || return 0
    done
}

guard_end() {
    unguard
    stop_timer
    note - reverted || :
}

# What the controller runs over a new connection: reaching this line is the proof that it can.
confirm() {
    # As its changes are made, the run has little left to do.
    tries=20
    while lock && [ "$LOCKED" = another ]; do
        [ $((tries -= 1)) -gt 0 ] || give_up "the run is still at work"
        sleep 1
    done
    set_clock
    first_line_of "$DIR/refused"
    [ -z "$LINE" ] || give_up "$LINE"
    first_line_of "$ROOT/pending"
    if [ "$LINE" = "$RUN" ]; then
        unguard
        flush "$ROOT"
        stop_timer
        note - confirmed || :
        say - confirmed
    elif grep -q '"change":"-","state":"confirmed"' "$DIR/receipt.jsonl" 2>/dev/null; then
        # It was, and the answer was lost on its way.
        say - confirmed
    else
        say - reverted
        exit "${STRICT:-0}"
    fi
}
