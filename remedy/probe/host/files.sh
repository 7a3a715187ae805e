# --- files -----------------------------------------------------------------------------------------------

# file_facts: one line a file, errors among them: that is how "not there" and "not allowed" are told apart.
file_facts() {
    IFS=$nl
    set -- $1
    unset IFS
    links=
    facts=$(stat -L -c '%f %u %g %s %d %i %Y %n' "$@" 2>&1 </dev/null)
    judge $?
    [ "$status" != timeout ] || return
    [ "$status" != failed:1 ] || status=ok
    for path; do [ ! -L "$path" ] || links=$links$nl$path; done
}

# A home on a dead file server must not cost the other files: it is tried with them, then left out.
stat_files() {
    file_facts "$files$nl$home_paths"
    if [ "$status" = timeout ]; then
        file_facts "$files"
        detail='the home directory did not answer'
        home= home_paths= scan_home_paths= guest_scan=
    fi
    printf '%s\n' "$facts"
    choose_files
}

# The regular files among them, up to 4 MiB each, and where the links lead.
choose_files() {
    readable= guest_files= linked= dangling= watched_paths= directory=
    set -f # a name that looks like a pattern is a name
    IFS=$nl
    for line in $facts; do
        case $line in 8???' '*) ;; *) continue ;; esac # a regular file: its mode, in hexadecimal
        path=/${line#* /} bytes=${line#* * * } bytes=${bytes%% *}
        case $path in *"'"* | *:*) continue ;; esac
        # A path that a pattern finds too is listed twice.
        case $readable$guest_files$nl in *"$nl$path$nl"*) continue ;; esac
        choose_reader "$path"
        if larger_than 4194304 "$bytes"; then
            :
        elif [ "$reader" ]; then
            guest_files=$guest_files$nl$path
        else
            readable=$readable$nl$path
        fi
        if [ "${path%/*}" != "$directory" ]; then
            directory=${path%/*}
            watched_paths=$watched_paths$nl$directory
        fi
        watched_paths=$watched_paths$nl$path
    done
    for path in $links; do
        if [ -e "$path" ]; then linked=$linked$nl$path; else dangling=$dangling$nl$path; fi
    done
    set +f
    unset IFS
}

# The hosts file without its block where that is an expected one: at which line it begins, its digest and that of the
# whole file, which tells whether all of this is of one moment; then the rest.
hosts_block() {
    [ "$block_digests" ] || { absent 'no block is expected'; return; }
    absent 'the block is another'
    path=/etc/hosts
    case $readable$nl in *"$nl$path$nl"*) ;; *) return ;; esac
    has sha256sum || return
    span=$(grep -anxF -e "$block_begin" -e "$block_end" $path)
    first=${span%%:*} last=${span##*"$nl"} last=${last%%:*}
    [ "$span" = "$first:$block_begin$nl$last:$block_end" ] || return
    block=$(sed -n "$first,${last}p" $path | sha256sum) block=${block%% *}
    case $nl$block_digests$nl in *"$nl$block$nl"*) ;; *) return ;; esac
    whole=$(sha256sum <$path)
    printf '%s %s %s\n' "$first" "$block" "${whole%% *}"
    [ "$first" -eq 1 ] || head -n $((first - 1)) $path
    tail -n +$((last + 1)) $path
    readable=$readable$nl
    readable=${readable%%"$nl$path$nl"*}$nl${readable#*"$nl$path$nl"}
    status=ok detail=
}

file_contents() {
    set -f
    IFS=$nl
    set -- $readable
    unset IFS
    set +f
    [ $# -eq 0 ] || every_line "$@"
}

# resolve LINK...: sets targets to where each of them leads, a line each, in their order. One process for all links,
# where readlink takes several. With IFS=$nl.
resolve() {
    targets=
    [ $# -eq 0 ] || targets=$(readlink -f "$@")
    number=0
    for target in $targets; do number=$((number + 1)); done
    [ "$number" -ne $# ] || return 0
    targets=
    for path; do targets=$targets$(readlink -f "$path")$nl; done
}

# One line a link: where it leads, and its own path.
file_links() {
    set -f
    IFS=$nl
    set -- $linked
    resolve "$@"
    for target in $targets; do
        printf '%s%s%s\n' "$target" "$tab" "$1"
        shift
    done
    for path in $dangling; do
        target=$(readlink "$path")
        case $target in /*) ;; *) target=${path%/*}/$target ;; esac
        if [ ! -d "${target%/*}" ] || [ -L "$target" ]; then target=; fi
        printf '%s%s%s\n' "$target" "$tab" "$path"
    done
    unset IFS
    set +f
}

file_attributes() {
    has lsattr || { absent 'lsattr is not installed'; return; }
    set -f
    IFS=$nl
    set -- $watched_paths
    unset IFS
    set +f
    [ $# -gt 0 ] || return
    lsattr -d "$@" # fails for a file system without attributes
}
