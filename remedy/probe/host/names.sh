# --- names -----------------------------------------------------------------------------------------------

# Each name is followed by an address of 0.0.0.0/8, which getent answers with itself: so the answer to a name
# is what comes before its mark, and a name without an answer is seen too. -A: both families as getaddrinfo has
# them without AI_ADDRCONFIG, which is how gloo, c10d and NCCL ask.
ask() {
    set -- getent ${nss_services:+-s "$nss_services"} $every ahosts "$@"
    if [ "$as" ]; then answers=$(as_user "$@"); else answers=$("$@" </dev/null 2>/dev/null); fi
}

came_through() { case $nl$answers in *"$nl$1 "*) ;; *) return 1 ;; esac; }

names() {
    has getent || { status=missing detail='getent is not installed'; return; }
    # A dead name server would cost 10 s a name by default.
    RES_OPTIONS='timeout:1 attempts:1'
    export RES_OPTIONS
    as= way= every=-A
    choose_user || { status=failed:1; return; }
    read -r own </proc/sys/kernel/hostname
    case $own in '' | -* | *[!A-Za-z0-9._-]*) own=0.0.0.0 ;; *) own="$own 0.0.0.0" ;; esac
    write_names_out || { status=missing detail='awk is not installed'; return; }
    give_up=$name_limit
    [ "$give_up" -lt "$left" ] || give_up=$left
    give_up=$((${up%.*} + give_up))
    # Mostly one process is enough for the own name and for the first group.
    first=${name_groups%%"$nl"*} late= answered=
    ask $own $first
    if came_through "${first##* }" && came_through 0.0.0.0; then
        printf 'asked %s\n' "$asker"
        print_differences $first
        answered=$first
    else
        ask $own
        if came_through 0.0.0.0; then
            printf '%s\n' "$answers"
            late=$first
        else
            choose_way || { status=failed:1 detail="getent gave no answer${asker:+ as $asker}, not even for an address"; return; }
            ask_each $own
        fi
        printf 'asked %s\n' "$asker"
    fi
    IFS=$nl
    for group in $name_groups; do
        unset IFS
        [ "$group" != "$answered" ] || continue
        in_time || break
        [ "$group" = "$late" ] || ask $group
        if came_through "${group##* }"; then print_differences $group; else ask_each $group; fi
    done
    unset IFS RES_OPTIONS
}

# Of many names come ranges: each line is a name, or a form with its first and last number. Each group is for one call.
write_names_out() {
    [ "$name_ranges" ] || return 0
    name_groups=$(awk -v size="$names_a_call" "$write_names" <<END
$name_ranges
END
    ) && [ "$name_groups" ]
}

write_names='
function write(name) {
    between = at % size ? " " : at ? "\n" : ""
    at++
    printf "%s%s 0.%d.%d.%d", between, name, int(at / 65536), int(at / 256) % 256, at % 256
}
NF == 1 { write($1) }
NF == 3 { for (number = $2; number <= $3; number++) write(sprintf($1, number)) }
'

# Who asks: the user who runs the jobs, whom a file that only root may read does not answer. Neither setpriv nor
# chroot opens a session, so nothing is written, logged or started; without further groups, which a directory would
# be asked for. Sets asker, and what its process begins with.
choose_user() {
    asker=$jobs_user
    if [ "$asker" ]; then
        user_id=$jobs_id group_id=$jobs_group
        [ "$user_id" ] || ask_directory || return 1
    elif [ "${SUDO_UID:-}" ]; then
        asker=$SUDO_USER user_id=$SUDO_UID group_id=${SUDO_GID:-}
    else
        user_id=$euid
    fi
    case $user_id in "$euid") return 0 ;; '' | *[!0-9]*) detail='the id of the user is not a number'; return 1 ;; esac
    case $group_id in '' | *[!0-9]*) detail='the group of the user is not a number'; return 1 ;; esac
    [ "$euid" = 0 ] || { detail="asking as $asker needs root"; return 1; }
    become "$user_id" "$group_id"
}

# A user who is not in /etc/passwd: asked of a directory whose daemon runs, for no other could answer without being
# started.
ask_directory() {
    services=
    for pair in sssd:sss nslcd:ldap winbindd:winbind ypbind:nis; do
        ! runs "${pair%:*}" || services="$services ${pair#*:}"
    done
    [ "$services" ] || { detail="there is no user $asker in /etc/passwd, and no directory service runs"; return 1; }
    entry=$(getent -s "passwd:${services# }" passwd "$asker" </dev/null 2>/dev/null)
    [ "$entry" ] || { detail="there is no user $asker on this host"; return 1; }
    entry=${entry#*:*:} user_id=${entry%%:*} entry=${entry#*:} group_id=${entry%%:*}
}

# Where the usual way did not come through: found out by an address that needs no resolver. Not every getent has
# -A, and the setpriv and chroot of busybox change no user.
choose_way() {
    for way in "$as" ${as:+"chroot --userspec=$user_id:$group_id --groups= /"}; do
        as=$way
        for every in -A ''; do
            ask 0.0.0.0
            ! came_through 0.0.0.0 || return 0
        done
    done
    return 1
}

# What is no more than the only address that the hosts file has for a name is not printed: the answer of a host
# that is right does not grow with the fleet. Of few names all is printed, which is less than awk costs.
print_differences() {
    [ $# -gt $((few_names * 2)) ] || { printf '%s\n' "$answers"; return; }
    last=
    for last; do :; done
    printf 'whole %s %s\n' "$2" "$last"
    if shorter=$(awk -v words="$*" "$differences" <<END
$answers
END
    ); then
        printf '%s\n' "$shorter"
    else
        printf '%s\n' "$answers"
    fi
}

few_names=64
differences='
BEGIN {
    count = split(words, word, " ")
    for (i = 2; i <= count; i += 2) { name[word[i]] = tolower(word[i - 1]); asked[tolower(word[i - 1])] = 1 }
    while ((getline line < "/etc/hosts") > 0) {
        gsub(/\r/, " ", line)
        sub(/#.*/, "", line)
        count = split(line, part, " ")
        for (i = 2; i <= count; i++) {
            each = tolower(part[i])
            if (!(each in asked)) continue
            if (!(each in listed)) listed[each] = part[1]
            else if (listed[each] != part[1]) listed[each] = "several"
        }
    }
}
$2 == "STREAM" {
    if (!($1 == $3 && $1 ~ /^0\./)) {
        if (!($1 in seen)) { seen[$1] = 1; lines = lines $0 "\n"; number++; address = $1 }
        next
    }
    if (!(number == 1 && ($1 in name) && listed[name[$1]] == address)) printf "%s%s\n", lines, $0
    for (each in seen) delete seen[each]
    lines = ""; number = 0
}'

in_time() {
    uptime
    [ "${up%.*}" -lt "$give_up" ] || { status=timeout detail='not all names could be asked in time'; return 1; }
}

# The slow way, when a group did not come through in time: each name by itself, 64 at once. What is not asked
# before the time is up has no line.
ask_each() {
    asked=0 asking=
    while [ $# -gt 1 ]; do
        in_time || break
        # Written in one piece: answers must not mix.
        { ask "$1" "$2"; printf '%s\n' "$answers"; } &
        asking="$asking $!"
        shift 2
        asked=$((asked + 1))
        [ $((asked % 64)) -ne 0 ] || { wait $asking; asking=; }
    done
    [ -z "$asking" ] || wait $asking # without a name it would wait for the watchdog
}
