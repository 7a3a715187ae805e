# --- network ---------------------------------------------------------------------------------------------

# Three arrays in JSON, from one process.
ip_facts() {
    has ip || { status=missing detail='ip (iproute2) is not installed'; return; }
    ip -j -d -force -batch - <<END 2>&1
addr show
route show table main
rule show
END
    judge $?
    [ "$status" != failed:1 ] || status=ok # its words tell
}

# Each name is followed by an address of 0.0.0.0/8, which getent answers with itself: so the answer to a name
# is what comes before its mark, and a name without an answer is seen too.
ask() { answers=$(getent ahostsv4 "$@" </dev/null 2>/dev/null); }

names() {
    has getent || { status=missing detail='getent is not installed'; return; }
    # A dead name server would cost 10 s a name by default.
    RES_OPTIONS='timeout:1 attempts:1'
    export RES_OPTIONS
    read -r own </proc/sys/kernel/hostname
    case $own in '' | -* | *[!A-Za-z0-9._-]*) own= ;; *) own="$own 0.0.0.0 " ;; esac
    give_up=$name_limit
    [ "$give_up" -lt "$left" ] || give_up=$left
    give_up=$((${up%.*} + give_up))
    IFS=$nl
    for group in $own$name_groups; do
        unset IFS
        in_time || break
        ask $group
        case $nl$answers in
            *"$nl${group##* } "*) printf '%s\n' "$answers" ;;
            *) ask_each $group ;;
        esac
    done
    unset IFS RES_OPTIONS
}

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

listeners() {
    if has ss; then
        limited ss -H -ltnpe
    else
        every_line /proc/net/tcp /proc/net/tcp6
    fi
}
