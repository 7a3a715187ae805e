# --- the begin and the end of a run -------------------------------------------------------------------

begin() { # folder...: what files are in that are to be looked at
    say - begun
    for tool in base64 sha256sum readlink; do
        command -v "$tool" >/dev/null || give_up "the host has no $tool"
    done
    survey "$@"
    roots "$ROOT/runs" >/dev/null || give_up "what root keeps of runs has to be root's alone: $WHY"
    [ -z "${DRY-}" ] || return 0
    known=
    [ ! -d "$ROOT" ] || known=1
    error=$(mkdir -p "$DIR/pre" "$DIR/new" 2>&1) || {
        there=$ROOT
        [ -d "$ROOT" ] || there=${ROOT%/*}
        give_up "$DIR cannot be made (${error##*: }): $(room "$there")"
    }
    # What is made anew is its owner's alone, by the umask.
    [ -z "$known" ] || chmod 700 "$ROOT" "$ROOT/runs" "$DIR"
    first_line_of "$ROOT/pending"
    [ -z "$LINE" ] || unattended "$LINE" || wait_for "$LINE"
    set_clock
    take
    # Another run may have come and gone between that look and the lock.
    first_line_of "$ROOT/pending"
    [ -z "$LINE" ] || wait_for "$LINE"
    heal
    # Nothing waits to be confirmed, so this is of a run that was cut off while it armed its timer.
    [ ! -e "$UNITS/$BOOT_UNIT" ] || disarm
    [ -z "${HEAD-}" ] || printf '%s\n' "$HEAD" >>"$ROOT/heads"
    { [ -z "${PLAN-}" ] || once; } 2>/dev/null && note - begun 2>/dev/null || give_up "$ROOT cannot be written: $(room "$ROOT")"
}

wait_for() { # run
    give_up "LOCKED run $1 waits for its confirmation, or for its timer to take it back"
}

# A plan serves once on a host, whatever controller brings it: "plans" has the digest and the run of each.
once() {
    carried_out=
    [ ! -s "$ROOT/plans" ] || carried_out=$(grep "^$PLAN " "$ROOT/plans")
    for word in $carried_out; do
        case " $PLAN $RUN $EARLIER " in
        *" $word "*) ;;
        *) give_up "USED $word" ;;
        esac
    done
    printf '%s %s\n' "$PLAN" "$RUN" >>"$ROOT/plans"
}

# What taking back needs is not kept for ever: it holds whole files as they were. Old is what both clocks call old,
# the host's by the folder, and the controller's by the id of its run: one of them may be wrong by a year.
forget() {
    [ -n "${KEEP_DAYS-}" ] || return 0
    old=
    for folder in "$ROOT"/runs/[0-9]*T*; do
        day=${folder##*/}
        ! [ "${day%%T*}" -lt "$KEEP_SINCE" ] 2>/dev/null || old=1
    done
    [ -n "$old" ] || return 0
    find "$ROOT/runs" -mindepth 1 -maxdepth 1 -type d -mtime "+$KEEP_DAYS" -name '[0-9]*T*' ! -name "$RUN" |
        while read -r folder; do
            day=${folder##*/}
            if [ "${day%%T*}" -lt "$KEEP_SINCE" ] 2>/dev/null; then rm -rf -- "$folder"; fi
        done
}

finish() {
    if [ -n "${DRY-}" ]; then
        say - finished
        return 0
    fi
    note - ended || :
    forget
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
