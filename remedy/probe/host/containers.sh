# --- containers ------------------------------------------------------------------------------------------

container_format='{"id":{{json .Id}},"name":{{json .Name}},"image":{{json .Config.Image}},'
container_format=$container_format'"shm_bytes":{{json .HostConfig.ShmSize}},"ipc_mode":{{json .HostConfig.IpcMode}},'
container_format=$container_format'"pid":{{json .State.Pid}}}'

# What the daemon goes by is in its file and on its command line, which the other sections have. Which runtimes it
# knows matters where there are GPUs: there it is asked where the file is younger than the daemon, or elsewhere. The
# client costs a third of what the whole probe does.
docker_daemon() {
    asks dockerd || return
    if [ ! -e /proc/driver/nvidia/version ] || files_tell "$pid"; then
        printf 'files %s\n' "$pid"
        return
    fi
    has docker || { status=missing detail='docker is not installed, but dockerd runs'; return; }
    guarded "$tool_limit" docker info --format '{{json .}}'
}

# files_tell PID: whether that process has the file as it is now (field 22 of proc_pid_stat(5) is its start).
files_tell() {
    ! grep -qs -e --config-file "/proc/$1/cmdline" || return 1
    [ -e /etc/docker/daemon.json ] || return 0
    IFS= read -r line <"/proc/$1/stat" || return
    set -- ${line##*') '}
    modified=${facts%% /etc/docker/daemon.json*}
    modified=${modified##* }
    case $modified-${20} in *[!0-9-]* | -* | *-) return 1 ;; esac
    [ "$modified" -lt $((booted + ${20} / 100 - 1)) ]
}

# A container that runs has a folder with its process in containerd's state, and files at Docker.
docker_containers() {
    asks dockerd || return
    case $names in *'(containerd-shim)'*) ;; *'(docker-containe)'*) ;; *) absent 'no container runs'; return ;; esac
    set --
    for task in /run/containerd/io.containerd.runtime.v2.task/moby/* \
        /run/docker/containerd/daemon/io.containerd.runtime.v2.task/moby/*; do
        [ -e "$task/init.pid" ] || continue
        id=${task##*/} pid=
        case $id in *[!0-9a-f]*) continue ;; esac
        read -r pid <"$task/init.pid"
        folder=/var/lib/docker/containers/$id
        [ -r "$folder/hostconfig.json" ] || { docker_by_client; return; }
        printf 'container %s %s\n' "$id" "$pid"
        set -- "$@" "$folder/config.v2.json" "$folder/hostconfig.json"
    done
    if [ $# -eq 0 ]; then
        for task in /run/containerd/io.containerd.runtime.v2.task /run/docker/containerd/daemon/io.containerd.runtime.v2.task; do
            [ ! -d "$task" ] || { absent 'no container of Docker runs'; return; }
        done
        docker_by_client
        return
    fi
    limited grep -aoHsE '"Image":"[^"]*"|"LogPath":"[^"]*","Name":"/[^"]*"|"ShmSize":[0-9]+|"IpcMode":"[^"]*"' "$@"
}

docker_by_client() {
    has docker || { status=missing detail='docker is not installed, but containers run'; return; }
    ids=$(docker ps -q --no-trunc 2>/dev/null </dev/null)
    judge $?
    [ "$status" = ok ] || { detail='docker ps failed'; return; }
    [ "$ids" ] || { absent 'no container runs'; return; }
    guarded "$tool_limit" docker inspect --format "$container_format" $ids
}

# Podman has no daemon, and its client writes whenever it is asked: a lock, its database, after a boot all of its
# state. Each of its containers has a conmon, whose arguments say which; what they lack is the image's name.
podman_containers() {
    asks conmon || return
    every_line /var/lib/containers/storage/*-containers/containers.json
}
