# What is done in a folder of a user, by a process that has the rights of that user and no other (acting.sh). The
# arguments: a task, a path, where that has to lead, and more. One line comes back: "done", "there" or "absent" and
# where the path leads, "changed" and a digest, or "no" and why not; after "there", the bytes.
# Not one single quote is in this text: it travels in quotes, twice.

umask 077
cd /
task=$1 path=$2 real=$3 mode=$4 after=$5 before=$6 temp=$7

no() {
    [ -z "${made-}" ] || rm -f -- "$made"
    echo "no $*"
    exit
}

digest() {
    SUM=absent
    [ ! -e "$1" ] || SUM=$(sha256sum <"$1") || no "$1 cannot be read: let its owner read it"
    SUM=${SUM%% *}
}

# Nobody else can have a say in what is at this name: no pipe, no file of another user, no second name.
plain() {
    [ -f "$1" ] || no "$1 is no regular file: move it away, then run the command again"
    [ -O "$1" ] || no "$1 is not of the user whose folder it is in: chown it, or change it by hand"
    [ "$(stat -c %h -- "$1")" = 1 ] || no "$1 has a second name (hard link), which may be of somebody else: copy it onto itself, or change it by hand"
}

REAL=$(readlink -f -- "$path") || REAL=$path
[ "$task" = read ] || [ "$REAL" = "$real" ] || no "$path leads to $REAL now, not to $real: make a new plan"
[ ! -e "$REAL" ] || plain "$REAL"
folder=${REAL%/*}

case $task in
read)
    [ -e "$REAL" ] || { echo "absent $REAL"; exit; }
    { command exec 3<"$REAL"; } 2>/dev/null || no "$REAL cannot be read: let its owner read it"
    echo "there $REAL"
    cat <&3
    ;;
put)
    [ -d "$folder" ] || (umask 022 && mkdir -p -- "$folder") 2>/dev/null || no "$folder cannot be made: let its owner write there"
    # Made by this process alone, and opened once: names are not gone by any more until it takes its place.
    set -C
    { command exec 3>"$temp"; } 2>/dev/null || no "$folder takes no new file: let its owner write there, and see df and quota"
    set +C
    made=$temp
    if [ ! -e "$REAL" ]; then
        chmod "$mode" /proc/self/fd/3
    elif ! cp --attributes-only --preserve=all -- "$REAL" /proc/self/fd/3 2>/dev/null; then
        chmod "$(stat -c %a -- "$REAL")" /proc/self/fd/3
    fi
    cat >&3 2>/dev/null || no "$folder has no room: see df and quota"
    digest /proc/self/fd/3
    [ "$SUM" = "$after" ] || no "$folder has no room: see df and quota"
    sync -- "$temp" 2>/dev/null || sync
    digest "$REAL"
    if [ "$SUM" != "${before:-$SUM}" ]; then
        rm -f -- "$temp"
        echo "changed $SUM"
        exit
    fi
    mv -f -- "$temp" "$REAL" 2>/dev/null || no "$REAL cannot be replaced: see whether it is a mount point"
    sync -- "$folder" 2>/dev/null || sync
    echo done
    ;;
drop)
    digest "$REAL"
    [ "$SUM" = "${before:-$SUM}" ] || { echo "changed $SUM"; exit; }
    rm -f -- "$REAL" 2>/dev/null || no "$REAL cannot be removed: let its owner write in $folder"
    sync -- "$folder" 2>/dev/null || sync
    echo done
    ;;
fits)
    while [ ! -e "${folder:-/}" ]; do folder=${folder%/*}; done
    [ -d "${folder:-/}" ] && [ -w "${folder:-/}" ] || no "$folder cannot be written: let its owner write there"
    echo done
    ;;
esac
