# A rehearsal: whether the run would get through, as far as that shows without writing. After `begin` with
# DRY=1; a change that could be made is "ready".

takes_files() { # folder; sets NEAREST: the folder, or what of its path is there
    NEAREST=${1:-/}
    while [ ! -e "$NEAREST" ]; do
        NEAREST=${NEAREST%/*}
        NEAREST=${NEAREST:-/}
    done
    [ -d "$NEAREST" ] && [ -w "$NEAREST" ]
}

rehearse() { # guarded strict
    takes_files "$ROOT/runs" || give_up "$NEAREST cannot be written"
    first_line_of "$ROOT/pending"
    [ -z "$LINE" ] || ! waits "$LINE" || wait_for "$LINE"
    # shellcheck disable=SC2046 # words
    ! alive $(readlink "$ROOT/owner") || give_up "LOCKED $(who)"
    [ -z "$1" ] || [ -z "$2" ] || { [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; } ||
        give_up "this host has no systemd, so no timer on it is sure to survive a broken connection or a reboot"
}

would() { # kind id path real ...
    case "$CHECKED " in *" $2 "*) ;; *) return 0 ;; esac
    if [ -n "$ENDED" ]; then
        say "$2" skipped
        return 0
    fi
    if [ "$1" != file ] || would_fit "$3" "$4"; then
        say "$2" ready
    else
        say "$2" failed "$WHY"
        ENDED=1
    fi
}

would_fit() { # path real
    whose "$1" || return 1
    if [ "$OWNER" != 0 ]; then
        have_done fits "$1" "$2" </dev/null
    else
        takes_files "${2%/*}" || { WHY="$NEAREST cannot be written"; return 1; }
    fi
}
