# --- writing a file whole, and what a run that was killed left of that --------------------------------

# A content that was sent as text is still here: the shell writes it itself.
fill() { # file, content
    text= name=${2##*/}
    case $name in *[!0-9a-f]*) ;; *) eval "text=\${TEXT_$name-}" ;; esac
    if [ -n "$text" ]; then printf %s "$text" >"$1"; else cat -- "$2" >"$1"; fi
}

# Make a temporary file beside $1: the bytes of $3, with owner, mode and label of what is there; $2: mode if new.
# Sets `temp`. It is not on the disk yet.
TEMPS=0
prepare() { # real mode content
    TEMPS=$((TEMPS + 1))
    temp=${1%/*}/.remedy.$RUN.$$.$TEMPS
    printf '%s\n' "$temp" >>"$ROOT/temps"
    # The name is taken first, by this run alone; whoever may put a link there cannot lead it elsewhere.
    [ -e "$1" ] || [ "$2" != 644 ] || umask 022
    set -C
    true >"$temp"
    taken=$?
    set +C
    umask 077
    [ "$taken" = 0 ] || return 1
    # A copy has the attributes; its bytes are then replaced. That it is opened anew has ext4 give it its blocks when
    # it is closed, so that one commit of the journal can have many such files.
    if [ -e "$1" ]; then
        cp -p --preserve=all -- "$1" "$temp" 2>/dev/null || cp -p -- "$1" "$temp"
    else
        [ "$2" = 644 ] || chmod "$2" "$temp"
    fi && fill "$temp" "$3" || { rm -f -- "$temp"; return 1; }
}

# Prepare all that is coming, so that it goes to the disk together with the pre-images, and not each file by itself.
# What cannot be prepared yet, because its folder is still to be made or there is no room, is tried when its turn comes.
READY=$nl
prepare_all() {
    IFS=$nl
    set -f
    set -- $COMING
    set +f
    unset IFS
    for line; do
        after=${line%%:*} line=${line#*:}
        mode=${line%%:*} real=${line#*:}
        [ ! -d "${real%/*}/" ] || ! prepare "$real" "$mode" "$DIR/new/$after" >"$SAID" 2>&1 ||
            READY=$READY$real$nl$temp$nl
    done
}

# Sets `temp` to the file that was prepared for $1, empty where there is none.
prepared() { # real
    temp=
    case $READY in *"$nl$1$nl"*) ;; *) return 0 ;; esac
    temp=${READY#*"$nl$1$nl"}
    temp=${temp%%"$nl"*}
    [ -f "$temp" ] || temp=
}

# Remove what was prepared and not put in its place. Their list is whose lock it is.
clear_temps() {
    IFS=$nl
    set -f
    set -- $READY
    set +f
    unset IFS
    for temp; do
        case $temp in
        */.remedy."$RUN.$$".*) [ ! -e "$temp" ] || rm -f -- "$temp" ;;
        esac
    done
    READY=$nl
    ! owned || [ ! -s "$ROOT/temps" ] || command : >"$ROOT/temps"
}

# Make the file that path $1 leads to, which has to be $2, hold the bytes of $4, whose sha256 is $5, keeping owner,
# mode, label and links; $3: mode if new. $6, if given, is the digest that it still has to have; when it has another
# one, that is left in `changed` and nothing is done. In a user's folder all of this is done as that user.
put() {
    changed=
    approach "$1" "$2" || { echo "$WHY"; return 1; }
    if [ "$OWNER" != 0 ]; then
        put_there "$@"
    else
        shift
        put_here "$@"
    fi
}

# Remove the file that path $1 leads to, which has to be $2; $3 as $6 of put.
drop() {
    changed=
    approach "$1" "$2" || { echo "$WHY"; return 1; }
    if [ "$OWNER" != 0 ]; then
        have_done drop "$1" "$2" '' '' "${3-}" </dev/null || { echo "$WHY"; return 1; }
        changed=${ANSWER#done} changed=${changed#changed }
    else
        digest "$2"
        if [ "$SUM" != "${3:-$SUM}" ]; then changed=$SUM; else rm -f -- "$2"; fi
    fi
}

put_there() {
    temp=${2%/*}/.remedy.$RUN.$$
    printf '%s\n' "$temp" >>"$ROOT/temps"
    have_done put "$1" "$2" "$3" "$5" "${6-}" "$temp" <"$4" || { echo "$WHY"; return 1; }
    changed=${ANSWER#done} changed=${changed#changed }
}

put_here() { # real mode content digest [before]
    folder=${1%/*}
    # Each of the folders, not the last one alone as with -m: the others would be for root only.
    [ -d "${folder:-/}" ] || (umask 022 && mkdir -p -- "$folder") || return 1
    prepared "$1"
    if [ -n "$temp" ] && [ -n "$COMMANDS" ] && [ -e "$1" ] &&
        ! cp --attributes-only --preserve=all --no-preserve=timestamps -- "$1" "$temp" 2>/dev/null; then
        rm -f -- "$temp"
        temp=
    fi
    if [ -z "$temp" ]; then
        prepare "$1" "$2" "$3" || return 1
        flush "$temp"
    fi
    digest "$1" || { rm -f -- "$temp"; return 1; }
    if [ "$SUM" != "${5:-$SUM}" ]; then
        rm -f -- "$temp"
        changed=$SUM
        return 0
    fi
    case $NAMES in
    *"${nl}1 $1$nl"*) links=1 ;;
    *) [ ! -e "$1" ] && links=1 || links=$(stat -c %h -- "$1" 2>/dev/null || echo 1) ;;
    esac
    [ "$links" != 1 ] || ! mv -f -- "$temp" "$1" 2>/dev/null || return 0
    # A second hard link, or a mount point of its own: a rename would cut it off, so write in place. Whoever comes
    # after a crash in the middle of that finds what is to be completed.
    printf '%s\n' "$1" "$3" "$4" >"$ROOT/inplace"
    flush "$3" "$ROOT/inplace" "$ROOT"
    error=$(cat -- "$temp" 2>&1 >"$1") || error="${error:-$1 cannot be written}"
    rm -f -- "$temp"
    [ -z "$error" ] || { echo "$error"; return 1; }
    flush "$1"
    rm -f -- "$ROOT/inplace"
    digest "$1"
    [ "$SUM" = "$4" ] || { echo "$1 holds something else after the write ($SUM)"; return 1; }
}

sweep() { # temporary file
    whose "$1" || return 0
    if [ "$OWNER" = 0 ]; then rm -f -- "$1"; else have_done drop "$1" "$1" </dev/null || :; fi
}

# What a run that was killed left: temporary files go, and a write in place that it began is completed. That is
# only done while the file holds the beginning of what was to be written, which nobody else would have put there.
heal() {
    if [ -s "$ROOT/temps" ]; then
        while IFS= read -r temp; do
            case ${temp##*/} in .remedy.?*) sweep "$temp" ;; esac
        done <"$ROOT/temps"
        command : >"$ROOT/temps"
    fi
    [ -e "$ROOT/inplace" ] || return 0
    { IFS= read -r real && IFS= read -r whole && IFS= read -r want; } <"$ROOT/inplace" || want=
    # Written in place is only where root works itself.
    if [ -n "$want" ] && approach "$real" "$real" && [ "$OWNER" = 0 ] && [ -e "$real" ] && digest "$whole" && [ "$SUM" = "$want" ]; then
        size=$(stat -c %s -- "$real")
        digest "$real"
        if [ "$SUM" != "$want" ] &&
            [ "$(head -c "$size" -- "$whole" | sha256sum)" = "$(sha256sum <"$real")" ]; then
            cat -- "$whole" >"$real" || give_up "$real was left half-written by a run that was killed, and cannot be completed"
            flush "$real"
            note - healed
            SINCE="just now: a run that was killed had left it half-written, and that was completed; run the command again"
        fi
    fi
    rm -f -- "$ROOT/inplace"
}
