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
    former=$DIR/pre/$1 after=$2
    target=$DIR/new/$after
    shift 2
    # Also over a part that is called the same: only what all parts make counts.
    [ ! -e "$target" ] || target=$DIR/spliced
    { spliced "$@" >"$target"; } 2>/dev/null <"$former" || printf '%s\n' "$NONCE" >"$target"
    [ "$target" = "$DIR/new/$after" ] || mv -f -- "$target" "$DIR/new/$after"
}

# What comes of standard input: it is taken apart into files, which are looked at and put together with the new parts.
spliced() { # [offset length name old line]...
    at=0 part=0 parts='' lines='' gone='' sums='' left=$(($# / 5))
    while [ "$left" -gt 0 ]; do
        left=$((left - 1)) part=$((part + 1))
        piece "$(($1 - at))" "$DIR/part.$part" && piece "$2" "$DIR/part.$part.old" || return 1
        parts="$parts part.$part part.$part.old" lines="$lines $5"
        [ "$2" = 0 ] || gone="$gone part.$part.old" sums="$sums$4  part.$part.old$nl"
        at=$(($1 + $2)) name=$3
        shift 5
        set -- "$@" "$DIR/part.$part"
        [ "$name" = - ] || set -- "$@" "$DIR/new/$name"
    done
    shown && cat -- "$@" -
}

# dd reads so many bytes at once, and leaves the others to whoever reads next.
piece() { # bytes file
    if [ "$1" = 0 ]; then command : >"$2"; else dd bs="$1" count=1 of="$2" 2>/dev/null; fi
}

# Whether the parts that go are those that readers of the plan were shown, and where.
shown() {
    [ -n "$parts" ] || return 0
    # A number and a name for each part: what stays before it, and what goes.
    set -- $(cd "$DIR" && wc -l -- $parts)
    line=1
    for expected in $lines; do
        line=$((line + $1))
        [ "$line" = "$expected" ] || return 1
        line=$((line + $3))
        shift 4
    done
    [ -z "$gone" ] || [ "$(cd "$DIR" && sha256sum -- $gone)$nl" = "$sums" ]
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

# After the checks and before the first change: what undoing needs is on disk, and what is to be put in its place,
# all of it at once. A file that waits for its own fsync costs a commit of the file system's journal each.
settle() {
    SUMS=$nl
    [ -n "$CHECKED" ] || return 0
    sound
    [ -n "$ENDED" ] || prepare_all
    set -- "$DIR"/part.*
    [ ! -e "$1" ] || rm -f -- "$@"
    set --
    for file in "$DIR"/pre/* "$ROOT/heads" "$ROOT/temps"; do
        [ ! -e "$file" ] || set -- "$@" "$file"
    done
    [ ! -e "$UNITS/$BOOT_UNIT" ] || set -- "$@" "$UNITS/$BOOT_UNIT" "$UNITS/multi-user.target.wants"
    IFS=$nl
    set -f
    for temp in $READY; do
        case $temp in ?*/.remedy."$RUN.$$".*) set -- "$@" "$temp" ;; esac
    done
    set +f
    unset IFS
    flush "$@" "$DIR"/* "$DIR" "$ROOT/runs" "$ROOT"
}

MADE= # the changes that were made
make() { # kind id args...
    kind=$1
    shift
    case "$CHECKED " in
    *" $1 "*) ;;
    *) return 0 ;;
    esac
    case $kind:$BAD in
    "file:"*" ${5-} "*)
        say "$1" failed "the new content in $DIR/new has a different digest: the disk is full, or a pre-image was changed"
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
        MADE="$MADE $1"
        say "$1" done
    else
        note "$1" failed
        ENDED=1
    fi
}
