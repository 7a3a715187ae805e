# --- what the next boot needs ----------------------------------------------------------------------------

# What sshd makes of its configuration at its next start or reload. Asked where a file of it is younger than what
# sshd writes anew each time that it has read them, its pid file: nothing is started on any other host. `sshd -T`
# reads, and prints; it listens nowhere, and asks for no more than each login does.
sshd_settings() {
    has sshd || { absent 'sshd is not installed'; return; }
    asks sshd || return
    [ ! -e /etc/ssh/sshd_not_to_be_run ] || printf 'refuses /etc/ssh/sshd_not_to_be_run\n'
    for unit in ssh.service sshd.service ssh.socket sshd.socket; do
        for path in "/etc/systemd/system/$unit" "/etc/systemd/system/$unit.d"/*.conf; do
            case $path in *remedy*) continue ;; esac
            [ ! -f "$path" ] || ! is_unread "$path" || printf 'unit %s\n' "$path"
        done
    done
    changed=
    for path in /etc/ssh /etc/ssh/sshd_config /etc/ssh/sshd_config.d /etc/ssh/sshd_config.d/* \
        /etc/ssh/ssh_host_*_key /etc/default/ssh /etc/sysconfig/sshd; do
        [ ! -e "$path" ] || ! is_unread "$path" || changed=yes
    done
    [ "$changed" ] || return 0
    [ "$euid" = 0 ] || { status=failed:1 detail='its files were changed, and asking what they say needs root'; return; }
    for path in /etc/ssh/sshd_config /etc/ssh/sshd_config.d/*.conf; do
        [ ! -e "$path" ] || [ -f "$path" ] || { status=failed:1 detail="$path is no regular file"; return; }
    done
    connection= user=
    set -f
    IFS=$nl
    for line in $variables; do
        case $line in
            SSH_CONNECTION=*) connection=${line#*=} ;;
            USER=*) user=${line#*=} ;;
        esac
    done
    sshd_options=$(sed -n -E 's/^[[:space:]]*(SSHD_OPTS|OPTIONS)=//p' /etc/default/ssh /etc/sysconfig/sshd 2>/dev/null)
    unset IFS
    case $user in '' | -* | *[!A-Za-z0-9._-]*) user=root ;; esac
    case $sshd_options in
        *[!A-Za-z0-9._=,:/@\ \"-]* | *-E* | *-d*) status=failed:1 detail='its options are not read'; set +f; return ;;
    esac
    IFS=" \"$nl"
    set -- $sshd_options
    unset IFS
    sshd_options=$(printf '%s ' "$@")
    set -- $connection
    printf 'connection %s %s\n' "$user" "$connection"
    answer=$("$(command -v sshd)" -T $sshd_options -C \
        "user=$user,host=${1:-127.0.0.1},addr=${1:-127.0.0.1},laddr=${3:-127.0.0.1},lport=${4:-22}" 2>&1 </dev/null)
    printf 'ended %s\n%s\n' "$?" "$answer"
    eval "user_home=~$user"
    case $nl$answer in
        *"${nl}allowgroups "* | *"${nl}denygroups "*) printf 'groups %s\n' "$(id -Gn "$user" 2>/dev/null </dev/null)" ;;
    esac
    case $nl$answer in *"${nl}authorizedkeysfile "*) ;; *) set +f; return 0 ;; esac
    answer=${answer#*authorizedkeysfile }
    for path in ${answer%%"$nl"*}; do
        case $path in '%h/'*) path=$user_home/${path#'%h/'} ;; /*) ;; *) path=$user_home/$path ;; esac
        case $path in *'%u'*) path=${path%%'%u'*}$user${path#*'%u'} ;; esac
        [ ! -s "$path" ] || printf 'keys %s\n' "$path"
    done
    set +f
}

# is_unread PATH: whether sshd has not read a file, or what is in a directory, since it was changed last.
is_unread() { [ ! -f /run/sshd.pid ] || [ "$1" -nt /run/sshd.pid ]; }

# Of /etc/fstab which devices are there, and which of the rarer file systems the host knows. Only below /dev: another
# path may be mounted when it is looked at.
boot_mounts() {
    [ -f /etc/fstab ] || { absent 'there is no /etc/fstab'; return; }
    while read -r source point type _ || [ "$source" ]; do
        device=
        case $source in
            '#'*) continue ;;
            /dev/*) device=$source ;;
            [A-Z]*=*)
                device=${source#*=} device=${device#\"} device=${device%\"}
                case $device in *[!A-Za-z0-9._:-]*) printf 'there %s\n' "$source"; continue ;; esac
                case ${source%%=*} in
                    UUID) device=/dev/disk/by-uuid/$device ;;
                    LABEL) device=/dev/disk/by-label/$device ;;
                    PARTUUID) device=/dev/disk/by-partuuid/$device ;;
                    PARTLABEL) device=/dev/disk/by-partlabel/$device ;;
                    *) device=/dev/disk/by-id/$device ;;
                esac
                ;;
        esac
        [ -z "$device" ] || [ ! -e "$device" ] || printf 'there %s\n' "$source"
        case $type in
            '' | ext[234] | xfs | btrfs | vfat | swap | tmpfs | none | auto | proc | sysfs | devpts | nfs | nfs4) ;;
            *) ! knows_type "$type" || printf 'knows %s\n' "$type" ;;
        esac
    done </etc/fstab
}

knows_type() {
    case $1 in *[!A-Za-z0-9._-]*) return 1 ;; esac
    while read -r first second; do [ "${second:-$first}" != "$1" ] || return 0; done </proc/filesystems
    ! has "mount.${1%%.*}" || return 0
    read -r release </proc/sys/kernel/osrelease
    [ -d "/lib/modules/$release/kernel/fs/$1" ]
}
