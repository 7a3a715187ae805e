# --- homes of other users: root opens nothing there -------------------------------------------------------

# Whoever has a home can make any name in it a link or a pipe. What is there is read with that user's rights alone,
# by a process that is started only where there is a file to read. Root itself asks no more than what stat(1) tells.

guests= # a line each: uid:gid:home

# add_guest HOME UID GID: nobody reads where it is not known whose home it is.
add_guest() {
    [ "$euid" = 0 ] || return 0
    case $2:$3 in *[!0-9:]* | :* | *:) set -- "$1" 65534 65534 ;; 0:*) return ;; esac
    guests=$guests$2:$3:$1$nl
}

# Sets reader to the guest in whose home a path is, "" where this process itself reads it.
choose_reader() {
    reader=
    [ "$guests" ] || return 0
    saved_ifs=${IFS-unset}
    IFS=$nl
    for each in $guests; do
        case $1 in "${each#*:*:}"/*) reader=$each ;; esac
    done
    IFS=$saved_ifs
    [ "$saved_ifs" != unset ] || unset IFS
}

# become UID GID: sets as, what the command begins with that has that user's rights and no further groups.
become() {
    as="setpriv --reuid=$1 --regid=$2 --clear-groups"
    has setpriv || as="chroot --userspec=$1:$2 --groups= /"
}

# as_user COMMAND...: by $as, in a session of its own, with no variable of root's, no terminal, and one pipe, which
# ends with its reader: that one is root's, and the watchdog's, whatever the user does to the command.
as_user() {
    env -i PATH="$PATH" LC_ALL=C ${RES_OPTIONS:+"RES_OPTIONS=$RES_OPTIONS"} $alone $as "$@" </dev/null 2>/dev/null |
        head -c "$most"
}
alone= most=4194304
! has setsid || alone=setsid

# What is read whole: after the homes, and an empty line, as every_line has it.
guest_contents() {
    [ "$guest_files" ] || { absent 'no file in the home of another user'; return; }
    IFS=$nl
    for guest in $guests; do printf '%s\n' "${guest#*:*:}"; done
    printf '\n'
    set -f
    for guest in $guests; do
        IFS=$nl
        set --
        for path in $guest_files; do
            choose_reader "$path"
            [ "$reader" != "$guest" ] || set -- "$@" "$path"
        done
        unset IFS
        [ $# -gt 0 ] || continue
        become_guest
        as_user grep -aHs '' "$@"
    done
    set +f
    unset IFS
}

become_guest() {
    uid=${guest%%:*} gid=${guest#*:}
    gid=${gid%%:*}
    become "$uid" "$gid"
}

# Adds to $mentioned the lines of $guest_scan, and of the files that those name.
guest_mentions() {
    all=$mentioned
    IFS=$nl
    for guest in $guests; do
        IFS=$nl
        set --
        for path in $guest_scan; do
            choose_reader "$path"
            [ "$reader" = "$guest" ] && [ -e "$path" ] || continue
            if [ -f "$path" ]; then
                set -- "$@" "$path"
            elif [ ! -d "$path" ] && [ ! "$path" -ef /dev/null ]; then
                leave_out "$path" "it is a $(stat -L -c %F "$path"), and no regular file"
            fi
        done
        unset IFS
        [ $# -gt 0 ] || continue
        become_guest
        search_home "$@" || continue
        all=$all$nl$mentioned
        name_further_files
        [ "$further" ] || continue
        IFS=$nl
        set -- $further
        unset IFS
        search_home "$@" || continue
        all=$all$nl$mentioned
    done
    unset IFS
    mentioned=$all
}

# Sets $mentioned. Where it is not all read, it is once more without what is large for a file of a home; then the home
# is what cannot be searched, and no other.
search_home() {
    search_as_guest "$@" && return
    largest=65536
    leave_out_larger "$@" && on_the_rest search_as_guest "$@" && return
    leave_out "${guest#*:*:}" "what is there could not be read as uid $uid"
    return 1
}

# Sets $mentioned. The last file tells as whom all were read: without it the user could have ended it. A line of a
# file that was not asked for is not the user's to say.
search_as_guest() {
    most=262144 searched=$nl
    for path; do searched=$searched$path$nl; done
    for as in "$as" "chroot --userspec=$uid:$gid --groups= /"; do
        lines=$(as_user grep -aHnsE -e "$scan_pattern" -e '^Uid:' "$@" /proc/self/status)
        case $nl$lines in *"$nl"/proc/self/status:*:Uid:"$tab$uid$tab$uid$tab$uid$tab"*) break ;; esac
        lines=
    done
    most=4194304 mentioned=
    [ "$lines" ] || return 1
    set -f
    IFS=$nl
    for line in $lines; do
        case $searched in *"$nl${line%%:*}$nl"*) mentioned=$mentioned$nl$line ;; esac
    done
    unset IFS
    set +f
}
