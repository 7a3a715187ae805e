# --- files: file_check, then file_do; $4 and $5 are digests, or "absent" -----------------------------

# Look at the files that the checks are going to ask about, with two processes for all of them: SUMS holds their
# digests until the checks are over, NAMES how many names (hard links) each has. What root does not read is left out.
NAMES=$nl
measure() { # real...
    unseen=$#
    while [ "$unseen" -gt 0 ]; do
        if whose "$1" && [ "$OWNER" = 0 ] && [ ! -L "$1" ] && [ -f "$1" ]; then set -- "$@" "$1"; fi
        shift
        unseen=$((unseen - 1))
    done
    [ $# -gt 0 ] || return 0
    SUMS=$nl$(sha256sum -- "$@" 2>/dev/null)$nl
    NAMES=$nl$(stat -c '%h %n' -- "$@" 2>/dev/null)$nl
}

# Compare with the plan and keep the pre-image. 0: to do, 1: refuse, 2: nothing to do.
file_check() { # id path real before after
    look_up "$2" || { say "$1" failed "$WHY"; return 1; }
    if [ "$REAL" != "$3" ]; then
        say "$1" stale "$2 leads to $REAL now, not to $3"
        return 1
    fi
    if [ "$SUM" != "$4" ]; then
        if [ "$SUM" = "$5" ]; then
            return 2
        fi
        written=$(stat -c 'last written %y by uid %u, %s bytes' -- "$REAL" 2>/dev/null)
        say "$1" stale "$REAL was changed ${SINCE:-since the plan was made}: expected sha256 $4, found $SUM${written:+, $written}"
        return 1
    fi
    [ -z "${DRY-}" ] || return 0
    [ "$SUM" = absent ] || keep_former "$1" 2>"$SAID" || { say "$1" failed "pre-image: $(said)"; return 1; }
    # What goes into a user's folder is written when its turn comes, as that user.
    [ "$5" = absent ] || [ "$OWNER" != 0 ] || COMING=$COMING$5:${6-644}:$3$nl
}

# What is to be written by root: digest, mode and path of each, in lines.
COMING=

keep_former() { # id; what look_up came to
    if [ "$OWNER" = 0 ]; then cp -p -- "$REAL" "$DIR/pre/$1"; else mv -f -- "$DIR/theirs" "$DIR/pre/$1"; fi
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
        drop "$2" "$3" "$4" >"$SAID" 2>&1
    else
        put "$2" "$3" "$6" "$DIR/new/$5" "$5" "$4" >"$SAID" 2>&1
    fi || { say "$1" failed "$(said)"; return 1; }
    if [ -n "$changed" ]; then
        say "$1" stale "$3 was changed while this run was at work (sha256 $changed)"
        return 1
    fi
    [ "$OWNER" = 0 ] || return 0 # that is on the disk
    folder=${3%/*}
    case $nl$FOLDERS in *"$nl${folder:-/}$nl"*) ;; *) FOLDERS=$FOLDERS${folder:-/}$nl ;; esac
}
