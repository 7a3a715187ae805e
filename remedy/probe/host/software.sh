# --- software --------------------------------------------------------------------------------------------

# Versions are in the names of the metadata directories: no interpreter is started.
software() {
    prefixes=
    IFS=:
    for directory in $login_path; do
        [ ! -L "$directory" ] || continue
        for name in python3 python torchrun; do
            [ ! -x "$directory/$name" ] || printf 'interpreter %s\n' "$directory/$name"
        done
        add_prefix "${directory%/*}"
    done
    IFS=$nl
    for interpreter in $interpreters; do
        [ ! -x "$interpreter" ] || printf 'interpreter %s\n' "$interpreter"
        interpreter=${interpreter%/*}
        add_prefix "${interpreter%/*}"
    done
    version_files=
    for prefix in /usr $prefixes $home/.local; do
        for site in "$prefix"/lib/python3*/site-packages "$prefix"/lib/python3*/dist-packages \
            "$prefix"/lib64/python3*/site-packages "$prefix"/local/lib/python3*/dist-packages; do
            [ ! -d "$site" ] || packages_in "$site"
        done
        for meta in "$prefix"/conda-meta/pytorch-[0-9]*.json "$prefix"/conda-meta/nccl-[0-9]*.json; do
            [ ! -e "$meta" ] || printf 'conda %s\n' "$meta"
        done
    done
    system_libraries
    for file in $version_files; do
        [ -f "$file" ] || continue
        choose_reader "$file"
        if [ -z "$reader" ] && [ -O "$file" ]; then
            while IFS= read -r line; do
                case $line in cuda*) printf '%s:%s\n' "$file" "$line"; break ;; esac
            done <"$file"
        else
            unset IFS
            guest=$reader
            version_of "$file"
            IFS=$nl
        fi
    done
    unset IFS
}

# By a process, which the watchdog ends: whoever owns the file can have a pipe in its place.
version_of() {
    set -- grep -aHm1 ^cuda "$1"
    if [ "$guest" ]; then
        become_guest
        as_user "$@"
    else
        "$@" 2>/dev/null </dev/null | head -c 4096
    fi
}

add_prefix() {
    case $nl$prefixes$nl in
        *"$nl$1$nl"*) ;;
        *) [ -z "$1" ] || [ "$1" = /usr ] || prefixes=$prefixes$nl$1 ;;
    esac
}

packages_in() {
    case $1 in "$prefix"/lib64/*) [ ! -L "$prefix/lib64" ] || return ;; esac
    for meta in "$1"/*-info; do
        package=${meta##*/}
        case " $packages " in
            *" ${package%%-*} "*) printf 'package %s\n' "$meta" ;;
        esac
    done
    [ ! -e "$1/torch/version.py" ] || version_files=$version_files$nl$1/torch/version.py
}

# What the loader would take for a system library. With a driver also what is in the folders that somebody named to
# the loader, for a driver that is mounted from elsewhere is in none of the usual; without, they are not looked for.
system_libraries() {
    set -- /usr/lib/*-linux-gnu*/libnccl.so.2.* /usr/lib64/libnccl.so.2.* /usr/local/lib/libnccl.so.2.* \
        /usr/local/cuda*/lib64/libnccl.so.2.* \
        /usr/lib/*-linux-gnu*/libmpi.so.40.* /usr/lib64/openmpi/lib/libmpi.so.40.* /usr/local/lib/libmpi.so.40.*
    links=
    if [ -e /proc/driver/nvidia/version ]; then
        choose_library_folders
        for directory in $library_folders; do
            printf 'folder %s\n' "$directory"
            # What programs ask for is the name with one number.
            for link in "$directory/libcuda.so.1" "$directory/libnccl.so.2"; do
                if [ -e "$link" ]; then links=$links$nl$link; elif [ -L "$link" ]; then printf 'dangling %s\n' "$link"; fi
            done
            [ -e "$directory/libcuda.so.1" ] || set -- "$@" "$directory"/libcuda.so.[1-9]*.*
            set -- "$@" "$directory"/libnccl.so.2.*
        done
    fi
    for library; do
        [ ! -e "$library" ] || printf 'library %s\n' "$library"
    done
    [ "$links" ] || return 0
    resolve $links
    for target in $targets; do printf 'library %s\n' "$target"; done
}

# Sets library_folders: LD_LIBRARY_PATH of sessions, what ld.so.conf and the files that it includes name, and the
# usual ones (ld.so(8), ldconfig(8)).
choose_library_folders() {
    library_folders= files_of_loader=
    IFS=':;'
    set -f
    for directory in $session_libraries; do add_library_folder "$directory"; done
    IFS=$nl
    set +f
    set -- /etc/ld.so.conf /etc/ld.so.conf.d/*.conf
    for _ in 1 2 3; do
        further=
        name_library_folders "$@"
        [ "$further" ] || break
        set -- $further
    done
    for directory in /lib /usr/lib /lib64 /usr/lib64 /lib/*-linux-gnu* /usr/lib/*-linux-gnu*; do
        [ ! -d "$directory" ] || add_library_folder "$directory"
    done
}

# name_library_folders FILE...: adds the folders that these files of ld.so.conf name, and to $further what they include.
name_library_folders() {
    files_of_loader=$files_of_loader$nl$*$nl
    lines=$(grep -hsm 1000 '^[[:space:]]*[^#[:space:]]' "$@" </dev/null)
    set -f
    for line in $lines; do
        line=${line%%#*}
        IFS=" $tab,:"
        set -- $line
        IFS=$nl
        case ${1:-} in
            include)
                shift
                set +f
                for pattern; do
                    case $pattern in /*) ;; *) pattern=/etc/$pattern ;; esac
                    for path in $pattern; do
                        case $files_of_loader in *"$nl$path$nl"*) ;; *) [ ! -f "$path" ] || further=$further$nl$path ;; esac
                    done
                done
                set -f
                ;;
            *)
                for directory; do
                    # Another path may be mounted when it is looked at.
                    case $directory in
                        /usr/* | /lib* | /opt/* | /run/* | /var/* | /etc/*) add_library_folder "$directory" ;;
                        /*) printf 'aside %s\n' "$directory" ;;
                    esac
                done
                ;;
        esac
    done
    set +f
}

add_library_folder() {
    set -- "${1%/}"
    case $1 in
        *[][*?]*) return ;;
        /lib | /lib/*) [ ! -L /lib ] || set -- "/usr$1" ;;
        /lib64 | /lib64/*) [ ! -L /lib64 ] || set -- "/usr$1" ;;
        /*) ;;
        *) return ;;
    esac
    case $library_folders$nl in *"$nl$1$nl"*) ;; *) library_folders=$library_folders$nl$1 ;; esac
}
