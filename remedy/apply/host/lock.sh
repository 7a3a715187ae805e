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
    lock || give_up "$ROOT cannot be written: $(room "$ROOT")"
    [ "$LOCKED" != another ] || give_up "LOCKED $(who)"
    if ! ln -s "$MINE" "$ROOT/owner" 2>/dev/null; then
        # shellcheck disable=SC2046 # words
        [ -n "$LOCKED" ] || ! alive $(readlink "$ROOT/owner") || give_up "LOCKED $(who)"
        dead=$(readlink "$ROOT/owner")
        # Of two that find a dead owner, one makes this folder.
        find "$ROOT" -maxdepth 1 -name 'dead.*' -mmin +1 -exec rmdir {} + 2>/dev/null
        mkdir "$ROOT/dead.${dead%% *}" 2>/dev/null || {
            [ -d "$ROOT/dead.${dead%% *}" ] || give_up "$ROOT cannot be written: $(room "$ROOT")"
            give_up "LOCKED another run is taking the lock over from a dead one"
        }
        disown
        error=$(ln -s "$MINE" "$ROOT/owner" 2>&1) || give_up "LOCKED $(who) $error"
        rmdir "$ROOT/dead.${dead%% *}"
    fi
    { command : >"$ROOT/token.$TOKEN"; } 2>/dev/null || {
        disown
        give_up "$ROOT cannot be written: $(room "$ROOT")"
    }
    trap release EXIT
}

# Take the kernel's lock, and set LOCKED: "own", "another" where a run has it, "" where this host has none to give.
# A ksh hands no program a file that is not named to it (9>&9), and the flock of busybox waits for ever or not at all.
# Without `command` a file that cannot be opened ends the script. 1 where it cannot.
lock() { # [wait]
    LOCKED=
    command -v flock >/dev/null || return 0
    { command exec 9>>"$ROOT/lock"; } 2>/dev/null || return 1
    if [ "${1-}" = wait ]; then flock 9 9>&9 2>/dev/null; else flock -n 9 9>&9 2>/dev/null; fi
    case $? in
    0) LOCKED=own ;;
    1) LOCKED=another ;; # flock(1); on a file system without locks it is more
    esac
    return 0
}

# The token is a file as well: the shell looks at that without starting a process.
owned() { [ -L "$ROOT/owner" ] && [ -e "$ROOT/token.$TOKEN" ]; }

disown() { rm -f "$ROOT/owner" "$ROOT"/token.* "$SAID"; }

release() {
    clear_temps
    ! owned || disown
}

# Set START to when a process was started, in ticks since the boot (proc_pid_stat(5)), "" where there is none: a
# number that is used again has another.
started() {
    START=
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    # shellcheck disable=SC2086 # words, after the name, which may hold blanks
    set -- ${stat##*\) }
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
        printf 'a run of remedy that has just begun, or a timer that takes changes back'
    elif alive "$@"; then
        printf 'run %s by %s since %s (process %s is at work)' "$2" "${7-}" "$6" "$4"
    else
        printf 'run %s by %s since %s (its process is dead)' "$2" "${7-}" "$6"
    fi
}
