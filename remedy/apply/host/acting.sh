# --- acting as a user: root's side of what is done in that user's folders (theirs.sh is the other) --------

# Longer, an owner who works against this does not keep a run waiting.
PATIENCE=20
# What a probe reads of a file at most, and a line.
LIMIT=4200000

# Sets OWNER, REAL (where a path leads, through all links) and SUM, and keeps the bytes of a user's file in $DIR/theirs.
look_up() { # path
    whose "$1" || return 1
    if [ "$OWNER" != 0 ]; then
        read_there "$1"
    else
        leads_to "$1"
        digest "$REAL" || { WHY="$REAL cannot be read"; return 1; }
    fi
}

# Sets OWNER, for a path that has to lead where the plan says.
approach() { # path real
    whose "$1" || return 1
    [ "$OWNER" = 0 ] || return 0 # its owner looks where it leads
    leads_to "$1"
    WHY="$1 leads to $REAL now, not to $2: make a new plan"
    [ "$REAL" = "$2" ]
}

# Run a command with the rights of OWNER alone, with nothing of root's but a pipe each way: in a session of its own,
# so that no terminal is shared, and ended, with all that it starts, when it takes too long.
as_owner() { env -i PATH="$PATH" LC_ALL=C setsid timeout -k 2 "$PATIENCE" $AS "$@" 9>&-; }

# Sets AS for OWNER: the account's own groups, and no other.
become() {
    [ "${become_owner-}" != "$OWNER" ] || return 0
    account=$(timeout "$PATIENCE" getent passwd "$OWNER" </dev/null 2>/dev/null 9>&-)
    groups=$(timeout "$PATIENCE" id -G -- "${account%%:*}" </dev/null 2>/dev/null 9>&-)
    WHY="uid $OWNER, whose folder it is, has no account on this host: chown the folder, or make the change by hand"
    [ -n "$account" ] && [ -n "$groups" ] || return 1
    group=${groups%% *}
    groups=$(printf %s "$groups" | tr ' ' ,)
    for AS in "setpriv --reuid=$OWNER --regid=$group --groups=$groups --inh-caps=-all --no-new-privs" \
        "chroot --userspec=$OWNER:$group --groups=$groups /"; do
        [ "$(as_owner id -u </dev/null 2>/dev/null)" != "$OWNER" ] || { become_owner=$OWNER; return 0; }
    done
    WHY="this host cannot act as uid $OWNER, whose folder it is: install util-linux and coreutils, or make the change by hand"
    return 1
}

# What theirs.sh says: its first line, then bytes; as many as there may be, and no longer than they may take.
there() { # task path real...; standard input goes there
    as_owner sh -c "$THEIRS" theirs "$@" 2>&1 | timeout "$((PATIENCE + 5))" head -c "$LIMIT"
}

# Sets WHY from an answer that is none of those hoped for.
refused() { # answer
    WHY="acting as uid $OWNER, whose folder it is: "
    case $1 in
    '') WHY="${WHY}no answer: it was ended, or took more than $PATIENCE s; see what that user runs, then run the command again" ;;
    *) WHY=$WHY$(printf '%.600s' "${1#no }") ;;
    esac
    return 1
}

# Sets REAL and SUM as that user finds them, and keeps the bytes in $DIR/theirs.
read_there() { # path
    become || return 1
    answer=$(there read "$1" </dev/null | {
        IFS= read -r line
        printf '%s\n' "$line"
        if [ -n "${DRY-}" ]; then sha256sum; else cat >"$DIR/theirs" && sha256sum <"$DIR/theirs"; fi
    })
    line=${answer%%"$nl"*}
    SUM=${answer#*"$nl"}
    SUM=${SUM%% *}
    case $line in
    "there /"*) REAL=${line#there } ;;
    "absent /"*) REAL=${line#absent } SUM=absent ;;
    *) refused "$line" ;;
    esac
}

# Have that user do one thing; sets ANSWER to "done", or to what came instead of it.
have_done() { # task path real...
    become || return 1
    ANSWER=$(there "$@")
    case $ANSWER in done | "changed "*) ;; *) refused "$ANSWER" ;; esac
}
