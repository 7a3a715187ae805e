# --- containers ------------------------------------------------------------------------------------------

container_format='{"id":{{json .Id}},"name":{{json .Name}},"image":{{json .Config.Image}},'
container_format=$container_format'"shm_bytes":{{json .HostConfig.ShmSize}},"ipc_mode":{{json .HostConfig.IpcMode}},'
container_format=$container_format'"pid":{{json .State.Pid}}}'

docker_daemon() {
    [ -S /var/run/docker.sock ] || { absent 'no docker socket'; return; }
    has docker || { status=missing detail='docker is not installed, but its socket is there'; return; }
    guarded "$tool_limit" docker info --format '{{json .}}'
    docker_status=$status
}

# containers ENGINE: one line of JSON for each that runs.
containers() {
    ids=$("$1" ps -q --no-trunc 2>/dev/null </dev/null)
    judge $?
    [ "$status" = ok ] || { detail="$1 ps failed"; return; }
    [ "$ids" ] || { absent 'no container runs'; return; }
    guarded "$tool_limit" "$1" inspect --format "$container_format" $ids
}

docker_containers() {
    { [ -S /var/run/docker.sock ] && has docker; } || { absent 'no docker'; return; }
    if [ "$docker_status" = timeout ]; then status=timeout; return; fi
    containers docker
}

podman_containers() {
    has podman || { absent 'podman is not installed'; return; }
    [ -e /var/lib/containers/storage/overlay-containers ] || { absent 'no container was ever made'; return; }
    containers podman
}
