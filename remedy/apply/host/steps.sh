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
