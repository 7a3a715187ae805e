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
    for library in /usr/lib/*-linux-gnu*/libnccl.so.2.* /usr/lib64/libnccl.so.2.* /usr/local/lib/libnccl.so.2.* \
        /usr/local/cuda*/lib64/libnccl.so.2.* \
        /usr/lib/*-linux-gnu*/libcuda.so.[1-9]*.* /usr/lib64/libcuda.so.[1-9]*.* \
        /usr/lib/*-linux-gnu*/libmpi.so.40.* /usr/lib64/openmpi/lib/libmpi.so.40.* /usr/local/lib/libmpi.so.40.*; do
        [ ! -e "$library" ] || printf 'library %s\n' "$library"
    done
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
