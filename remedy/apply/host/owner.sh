# --- whose folders a path leads through: root never follows somebody who could lead it elsewhere --------
#
# Where nobody but root can change a name on the way, names stay what they were: root works there itself. Where some
# of the folders are one user's, that user can swap any name for a link at any moment, and no look beforehand helps:
# the work is done with that user's rights alone (acting.sh). All else is refused.

# Folders that nobody but root can lead elsewhere, nor any folder above them: looked at once a run.
SAFE=$nl

# Sets WAY: the folders in which a name of the path is looked up, links followed; and ENDS: those of them in which
# that name is not a folder.
walk() { # path
    rest=$1 at='' WAY='' ENDS='' hops=0
    while [ -n "$rest" ]; do
        rest=${rest#/}
        name=${rest%%/*}
        case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
        case $name in
        '' | .) continue ;;
        ..)
            at=${at%/*}
            continue
            ;;
        esac
        WAY=$WAY${at:-/}$nl
        if [ -L "$at/$name" ]; then
            ENDS=$ENDS${at:-/}$nl
            hops=$((hops + 1))
            [ "$hops" -le 40 ] && target=$(readlink -- "$at/$name") || return 1
            case $target in
            *"$nl"*) return 1 ;;
            /*) at= ;;
            esac
            rest=$target/$rest
        else
            [ -n "$rest" ] && [ -d "$at/$name" ] || ENDS=$ENDS${at:-/}$nl
            at=$at/$name
        fi
    done
}

# Sets KIND to own, sticky, open or user, HOLDER (a uid) and FOLDER, from a line of stat.
LOOK=%u:%g:%a:%d:%n
judge() { # line
    HOLDER=${1%%:*} group=${1#*:}
    mode=${group#*:} group=${group%%:*}
    device=${mode#*:} mode=${mode%%:*}
    FOLDER=${device#*:} device=${device%%:*}
    [ "$FOLDER" != / ] || main_device=$device
    # Tried out without root, this has the rights of one user anyway.
    [ -O / ] || [ ! -O "$FOLDER" ] || HOLDER=0 mode=700
    [ "$device" = "${main_device-}" ] || mounted_by
    KIND=own
    [ "$HOLDER" = 0 ] || KIND=user
    # The bits of the group are also those of an access control list, whatever the group is.
    case $KIND:$mode in
    own:[1357]?[2367]? | own:[1357]??[2367]) KIND=sticky ;;
    own:*[2367]? | own:*[2367]) KIND=open ;;
    esac
}

# A user can mount a file system of the user's own making, which says of a folder that it is root's.
mounted_by() {
    number=$(((device >> 8) & 4095)):$(((device & 255) | ((device >> 12) & ~255)))
    while IFS=' ' read -r _ _ part rest; do
        case $part:$rest in
        "$number":*" - fuse"*user_id=*)
            HOLDER=${rest##*user_id=}
            HOLDER=${HOLDER%%[!0-9]*}
            return
            ;;
        esac
    done </proc/self/mountinfo
}

# Look at folders that are going to be asked about, with one process; each comes after the folder that it is in.
survey() { # folder...
    set -f
    IFS=$nl
    for line in $(stat -c "$LOOK" -- "$@" 2>/dev/null); do
        judge "$line"
        above=${FOLDER%/*}
        case $KIND:$FOLDER:$SAFE in
        own:/:* | own:*"$nl${above:-/}$nl"*) SAFE=$SAFE$FOLDER$nl ;;
        esac
    done
    unset IFS
    set +f
}

# Sets OWNER: 0 where root works itself, or the uid to act as. Fails, with WHY, where nobody can be acted as.
whose() { # path
    OWNER=0 WHY="the way to $1 cannot be followed: see where its links lead, then run the command again"
    case $1 in *"$nl"*) return 1 ;; esac
    folder=${1%/*}
    # A folder that is known is no link, nor is any above it.
    case $SAFE in *"$nl${folder:-/}$nl"*) [ -L "$1" ] || return 0 ;; esac
    goal=$1
    walk "$1" || return 1
    set -f
    IFS=$nl
    set --
    for folder in $WAY; do
        case $SAFE in *"$nl$folder$nl"*) continue ;; esac
        [ ! -d "$folder" ] || set -- "$@" "$folder"
    done
    lines=
    [ $# = 0 ] || lines=$(stat -c "$LOOK" -- "$@" 2>/dev/null) || lines=$nl
    WHY=
    for line in $lines; do
        judge "$line"
        case $KIND in
        own)
            # What comes after a folder of a user's may be below it.
            [ "$OWNER" != 0 ] || SAFE=$SAFE$FOLDER$nl
            ;;
        user)
            [ "$OWNER" = 0 ] || [ "$OWNER" = "$HOLDER" ] ||
                WHY="folders on the way to $goal belong to several users (uid $OWNER and $HOLDER): change it by hand"
            OWNER=$HOLDER
            ;;
        open) WHY="others than root can write in $FOLDER (mode $mode, gid $group), so root does not work there: chmod go-w $FOLDER, or change $goal by hand" ;;
        sticky)
            case $nl$ENDS in
            *"$nl$FOLDER$nl"*) WHY="everybody may make files in $FOLDER, so root does not work there: chmod go-w $FOLDER if it is for root alone, or change $goal by hand" ;;
            esac
            ;;
        esac
        [ -z "$WHY" ] || break
    done
    [ "$lines" != "$nl" ] || WHY="the folders on the way to $goal cannot be checked: run stat on each, then run the command again"
    unset IFS
    set +f
    [ -z "$WHY" ]
}

# For what root does with a path as root only: fails, and says why, where the way is not root's.
roots() { # path
    if whose "$1"; then
        [ "$OWNER" != 0 ] || return 0
        WHY="$1 is in a folder of uid $OWNER: chown that to root, or make the change by hand"
    fi
    echo "$WHY"
    return 1
}

# The log has its name where people look for it. Where others could lead an append elsewhere, it is kept with what
# only root can reach, and that name is a link for people; it is made without following what may be there.
choose_log() {
    log_chosen=1
    ! roots "$LOG" >/dev/null || return 0
    name=$LOG
    LOG=$ROOT/log.jsonl
    [ -e "$name" ] || [ -L "$name" ] || ln -sT -- "$LOG" "$name" 2>/dev/null || :
}
