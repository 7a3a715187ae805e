# --- what the next boot needs ----------------------------------------------------------------------------

# What sshd makes of its configuration at its next start or reload. Asked where a file of it is younger than what
# sshd writes anew each time that it has read them, its pid file: nothing is started on any other host. `sshd -T`
# reads, and prints; it listens nowhere, and asks for no more than each login does.
sshd_settings() {
    asks sshd || return
    path=/etc/ssh/sshd_not_to_be_run
    [ ! -e "$path" ] || printf 'refuses %s\n' "$path"
    changed=
    for path in /etc/ssh /etc/ssh/sshd_config* /etc/ssh/sshd_config.d/* /etc/ssh/ssh_host_*_key /etc/default/ssh \
        /etc/sysconfig/sshd; do
        is_unread "$path" || continue
        changed=yes
        # sshd would wait for what a pipe says.
        [ -f "$path" ] || [ -d "$path" ] || { status=failed:1 detail="$path is no regular file"; return; }
    done
    [ "$changed" ] || return 0
    [ "$euid" = 0 ] || { status=failed:1 detail='asking what its files say needs root'; return; }
    connection= user=root
    set -f
    IFS=$nl
    for line in $variables; do
        case $line in SSH_CONNECTION=*) connection=${line#*=} ;; USER=?*) user=${line#*=} ;; esac
    done
    unset IFS
    case $user in -* | *[!A-Za-z0-9._-]*) user=root ;; esac
    sshd_options=$(sed -n -E 's/^(SSHD_OPTS|OPTIONS)="?([^"$]*)"?$/\2/p' /etc/default/ssh /etc/sysconfig/sshd 2>/dev/null)
    case " $sshd_options" in *' -E'* | *' -d'*) sshd_options= ;; esac # what writes a log
    set -- $connection
    printf 'connection %s %s\n' "$user" "$connection"
    answer=$("$(command -v sshd)" -T $sshd_options -C \
        "user=$user,host=${1:-::1},addr=${1:-::1},laddr=${3:-::1},lport=${4:-22}" 2>&1 </dev/null)
    printf 'ended %s\n%s\n' "$?" "$answer"
    answer=${answer#*authorizedkeysfile }
    for path in ${answer%%"$nl"*}; do
        case $path in *%u*) path=${path%%%u*}$user${path#*%u} ;; esac
        case $path in /*) ;; *) eval "path=~$user/\${path#%h/}" ;; esac
        [ ! -s "$path" ] || printf 'keys %s\n' "$path"
    done
    set +f
}

# is_unread PATH: whether there is a file that was changed, or a directory in which some was, since sshd read it last.
is_unread() { [ -e "$1" ] && { [ ! -f /run/sshd.pid ] || [ "$1" -nt /run/sshd.pid ]; }; }

# Of /etc/fstab which devices are there. Only below /dev: another path may be mounted when it is looked at.
boot_mounts() {
    [ -f /etc/fstab ] || { absent 'there is no /etc/fstab'; return; }
    while read -r source _ || [ "$source" ]; do
        device=${source#*=} device=${device#\"} device=${device%\"}
        case $source in
            '#'*) continue ;;
            /dev/*) device=$source ;;
            [A-Z]*=*[!A-Za-z0-9._:\"-]*) device=/dev ;; # written in another way there
            [A-Z]*=*) for device in /dev/disk/by-*/"$device"; do [ ! -e "$device" ] || break; done ;;
            *) device= ;;
        esac
        [ ! -e "$device" ] || printf 'there %s\n' "$source"
    done </etc/fstab
}
