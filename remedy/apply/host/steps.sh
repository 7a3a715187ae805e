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

# Make a file's new content from the one that was checked: `splice ID DIGEST [OFFSET LENGTH NAME OLD LINE]...`;
# LENGTH bytes go at each OFFSET, and those that the plan gave under NAME come, "-" for none. Readers of the plan
# were shown the bytes OLD (a digest) at LINE: where those are not what goes, the new content is none.
splice() {
    case "$CHECKED " in *" $1 "*) ;; *) return 0 ;; esac
    id=$1
    after=$2
    shift 2
    at=0
    {
        while [ $# -gt 0 ]; do
            shown "$DIR/pre/$id" "$@" || printf '%s\n' "$NONCE"
            if [ "$at" = 0 ] && [ "$1" != 0 ]; then
                head -c "$1" -- "$DIR/pre/$id"
            elif [ "$1" != "$at" ]; then
                tail -c "+$((at + 1))" -- "$DIR/pre/$id" | head -c "$(($1 - at))"
            fi
            [ "$3" = - ] || cat -- "$DIR/new/$3"
            at=$(($1 + $2))
            shift 5
        done
        tail -c "+$((at + 1))" -- "$DIR/pre/$id"
    } >"$DIR/spliced" 2>/dev/null
    # Also over a part that is called the same: only what all parts make counts.
    mv -f -- "$DIR/spliced" "$DIR/new/$after"
}

shown() { # file offset length name old line
    lines=$(head -c "$2" -- "$1" | tr -cd '\n' | wc -c)
    [ "$((lines + 1))" = "$6" ] || return 1
    [ "$3" != 0 ] || return 0
    old=$(tail -c "+$(($2 + 1))" -- "$1" | head -c "$3" | sha256sum)
    [ "${old%% *}" = "$5" ]
}

# Whether every new content is what it is called by: one that was cut off by a full disk, or is made from a
# pre-image that somebody changed, is put nowhere, and the host is not touched at all.
BAD=
sound() {
    set -- "$DIR"/new/*
    [ -e "$1" ] || return 0
    sums=$nl$(sha256sum -- "$@" 2>/dev/null)$nl
    for content; do
        # What has no line, because it could not be read, is not sound either.
        case $sums in
        *"$nl${content##*/}  $content$nl"*) ;;
        *) BAD="$BAD ${content##*/} " ;;
        esac
    done
    [ -z "$BAD" ] || ENDED=1
}

# After the checks and before the first change: what undoing needs is on disk, all of it at once. A file that
# waits for its own fsync costs a commit of the file system's journal each.
settle() {
    [ -n "$CHECKED" ] || return 0
    sound
    set -- "$DIR"/pre/*
    [ -e "$1" ] || shift
    [ ! -e "$ROOT/heads" ] || set -- "$@" "$ROOT/heads"
    flush "$@" "$DIR"/* "$DIR" "$ROOT/runs" "$ROOT"
}

make() { # kind id args...
    kind=$1
    shift
    case "$CHECKED " in
    *" $1 "*) ;;
    *) return 0 ;;
    esac
    case $kind:$BAD in
    "file:"*" ${5-} "*)
        say "$1" failed "the new content in $DIR/new is not what it should be: the disk is full, or a pre-image was changed"
        return 0
        ;;
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
