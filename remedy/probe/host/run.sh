# --- the order of it all ---------------------------------------------------------------------------------

# Cheap and certain first: what is cut off at the deadline is what could hang.
probe() {
    read -r process _ </proc/self/stat
    watchdog "$process" >/dev/null 2>&1 &
    dog=$!
    exec 4>&- # what hangs must not keep the session open
    section clock clock
    section session session
    section guards guards
    section kernel kernel
    section file-facts stat_files
    section hosts-block hosts_block
    section file-contents file_contents
    section guest-contents guest_contents
    section file-links file_links
    section file-attributes file_attributes
    section environment environment
    section mentions mentions
    section software software
    section space space
    section processes processes
    section process-details process_details
    section process-outputs process_outputs
    section service-environments service_environments
    section links links
    section ip ip_facts
    section routing routing_facts
    section queueing queueing_facts
    choose_name_services
    section names names
    section listeners listeners
    section units service_units
    section sshd sshd_settings
    section boot-mounts boot_mounts
    section virtualization virtualization
    section shm shared_memory
    section shm-holders shared_memory_holders
    section nft nft_rules
    section nft-devices nft_devices
    section iptables iptables_rules
    section ip6tables ip6tables_rules
    section iptables-legacy legacy_iptables
    section ipsets ip_sets
    section arptables-legacy legacy_arptables
    section ebtables-legacy legacy_ebtables
    section ip6tables-legacy legacy_ip6tables
    section firewalld firewalld
    section docker docker_daemon
    section docker-containers docker_containers
    section podman-containers podman_containers
    section rdma rdma
    section nvidia-gpus nvidia_gpus
    section nvidia-processes nvidia_processes
    section nvidia-links nvidia_links
    section acs pcie_acs
    kill "$dog"
    wait "$dog" # so that nothing is left of it
}

uptime
stop=$((${up%.*} + stop_after))
shm_files= saved= nvidia_status= names= folders= session_libraries= session_file= booted=0
while read -r key _ euid _; do [ "$key" != Uid: ] || break; done </proc/self/status
home=${HOME:-/}
homes=$home
case ${SUDO_USER:-} in
    '' | -* | *[!A-Za-z0-9._-]*) ;;
    *)
        eval "user_home=~$SUDO_USER"
        case $user_home in
            /*) homes=$user_home$nl$home; add_guest "$user_home" "${SUDO_UID:-}" "${SUDO_GID:-}" ;;
        esac
        ;;
esac
# Read by the shell itself: getpwnam(3) could start a daemon for a user who is not in the file.
jobs_id= jobs_group=
if [ "$jobs_user" ]; then
    while IFS=: read -r user _ jobs_id jobs_group _ user_home _; do
        [ "$user" != "$jobs_user" ] || break
        jobs_id= jobs_group= user_home=
    done </etc/passwd
    case $user_home in /*)
        [ "$user_home" = "$home" ] || homes=$user_home$nl$homes
        add_guest "$user_home" "$jobs_id" "$jobs_group"
    ;; esac
fi
choose_reader "$home/"
case $reader$home in
    /root | / | *:*) ;;
    *) [ -O "$home" ] || add_guest "$home" '' '' ;;
esac
home_paths= scan_home_paths= guest_scan=
IFS=$nl
for directory in $homes; do
    for path in $home_files; do home_paths=$home_paths$nl$directory/$path; done
    choose_reader "$directory/"
    for path in $scan_home_files; do
        if [ "$reader" ]; then
            guest_scan=$guest_scan$nl$directory/$path
        else
            scan_home_paths=$scan_home_paths$nl$directory/$path
        fi
    done
done
unset IFS

# Gateways pass line after line on: there lines are long, and few.
if has base64 && has gzip; then
    # A quarter of it travels: what ssh costs on both sides is counted in bytes. What level 4 takes longer than 1
    # is half a millisecond; it is a tenth shorter, and a third quicker to unpack.
    printf '\nremedy-probe %s gzip\n' "$nonce"
    probe 4>&2 </dev/null 2>/dev/null | gzip -4c | base64 ${REMEDY_COLUMNS:+-w "$REMEDY_COLUMNS"}
elif has base64; then
    printf '\nremedy-probe %s base64\n' "$nonce"
    probe 4>&2 </dev/null 2>/dev/null | base64 ${REMEDY_COLUMNS:+-w "$REMEDY_COLUMNS"}
else
    printf '\nremedy-probe %s hex\n' "$nonce"
    probe 4>&2 </dev/null 2>/dev/null | od -An -v -tx1
fi
printf '\nremedy-probe %s end\n' "$nonce"
exit 0
