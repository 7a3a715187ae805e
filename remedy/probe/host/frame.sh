# The probe: reads one host, changes nothing, prints what it found.
#
# Run as `sh -s` with this text on stdin; needs POSIX sh and grep, stat and the like from coreutils or busybox.
# What it looks at is in the variables that render_probe() puts in front: nonce, stop_after, tool_limit,
# name_limit, name_groups, name_ranges, names_a_call, block_digests, block_begin, block_end, jobs_user, heads_of,
# files, home_files, scan_files, scan_home_files, scan_pattern, at_pattern, outline_pattern, variable_names, secret,
# secret_hints,
# kernel_files, link_files, rdma_files, units, programs, presence, file_systems, interpreters, packages, daemons.
#
# Output, all of it packed by gzip and in base64 (unpacked where there is no gzip; in hexadecimal where there is no
# base64) between two marked lines:
#
#     @NONCE begin NAME UPTIME
#     ... any bytes ...
#     @NONCE end NAME UPTIME STATUS DETAIL
#
# STATUS is ok, none (nothing there to look at), late (the probe's time was up), timeout, missing (no such
# tool) or failed:RC. The nonce is new in every run and known to nobody on the host, so no file content
# and no name can end a section or begin another. A file's lines each carry the file's path in front.

LC_ALL=C
export LC_ALL
login_path=$PATH
for directory in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    case $directory in /sbin | /bin) [ ! -L "$directory" ] || continue ;; esac # that of /usr, which is in it
    case :$PATH: in *:$directory:*) ;; *) PATH=$PATH:$directory ;; esac
done
nl='
'
tab='	'

# --- frame -----------------------------------------------------------------------------------------------

# The uptime, as the kernel writes it. A file read by the shell itself: `date` would be a process each time.
uptime() { IFS=' ' read -r up _ </proc/uptime || up=0; }

seconds_left() { left=$((stop - ${up%.*})); }

# section NAME FUNCTION: what FUNCTION prints, between its two marks. It begins when the one before has ended.
section() {
    status=ok detail=
    seconds_left
    printf '@%s begin %s %s\n' "$nonce" "$1" "$up"
    if [ "$left" -gt 0 ]; then "$2"; else status=late; fi
    uptime
    printf '\n@%s end %s %s %s %s\n' "$nonce" "$1" "$up" "$status" "${detail%%"$nl"*}"
}

absent() { status=none detail=$1; }

# larger_than MOST BYTES: the arithmetic of mksh has 32 bits, which a file of 4 GiB begins anew.
larger_than() { [ "${#2}" -gt 9 ] || [ "$2" -gt "$1" ] 2>/dev/null; }

has() { command -v "$1" >/dev/null 2>&1; }

# The status that an exit status stands for.
judge() {
    case $1 in
        0) status=ok ;;
        124 | 137 | 143) status=timeout ;;
        126 | 127) status=missing ;;
        *) status=failed:$1 ;;
    esac
}

# The one watchdog: a timeout(1) around each tool would cost a quarter of what the whole probe costs. Every second
# it looks for what the probe ($1) has started and is too old, generation by generation: a shell reads byte by byte,
# so looking at all processes of a host costs more than many a tool. What has the probe's own command line is the probe.
watchdog() {
    trap 'kill "$nap"; exit' TERM
    probe=$1
    # Nothing is late before the shortest time that anything has: most probes have ended by then.
    nap= seconds=2
    [ "$tool_limit" -ge 2 ] && [ "$stop_after" -ge 2 ] || seconds=1
    while [ -d "/proc/$probe" ]; do
        sleep "$seconds" 4>&- &
        nap=$! seconds=1 own=
        wait "$nap"
        uptime
        family=" $probe " late=' ' generation=$probe
        while [ "$generation" ]; do
            set -- $generation
            generation=
            look_at_children "$@"
        done
        # All at once: what a process has started is no longer found when that has ended.
        [ "$late" = ' ' ] || kill -KILL $late
        # What is left of them long after that is past any signal, or the probe itself is stopped.
        [ "${up%.*}" -ge $((stop + 3)) ] || continue
        name_stuck $family >&4
        kill -KILL "$probe"
        return
    done
}

# The processes of a probe that does not end, each with its state (proc_pid_stat(5)): D waits in the kernel, T is stopped.
name_stuck() { # pid...
    for pid; do
        IFS= read -r line <"/proc/$pid/stat" || continue
        state=${line##*\) } command=$(tr '\000\n' '  ' <"/proc/$pid/cmdline" 4>&- | head -c 200)
        printf 'remedy-stuck %s %s %s %s\n' "$nonce" "$pid" "${state%% *}" "$command"
    done
}

# The children of processes, by the kernel's lists (proc_tid_children(5)), which not every kernel has.
look_at_children() {
    if [ ! -e "/proc/$probe/task/$probe/children" ]; then
        for stat in /proc/[0-9]*/stat; do
            pid=${stat#/proc/} pid=${pid%/stat}
            look_at_process
        done
        return
    fi
    for parent; do
        for list in "/proc/$parent/task"/[0-9]*/children; do
            children=
            IFS= read -r children <"$list"
            for pid in $children; do look_at_process; done
        done
    done
}

# A child of the family, $pid (proc_pid_stat(5)), joins it, and is late when its time is over or its parent is late.
# A name that holds a newline leaves a line without the mark, which is passed over.
look_at_process() {
    case $family in *" $pid "*) return ;; esac
    IFS= read -r line <"/proc/$pid/stat" || return
    case $line in *') '*) ;; *) return ;; esac
    name=${line#*\(} name=${name%\)*}
    set -- ${line##*\) }
    case $family in *" $2 "*) ;; *) return ;; esac
    family="$family$pid " generation="$generation $pid"
    limit=$tool_limit
    case $name in
        getent) limit=2 ;;
        nvidia-smi) limit=$((tool_limit * 2)) ;; # see there
        cat) limit=$((tool_limit * 2 + 1)) ;; # after the tool whose output it copies
    esac
    case $late in
        *" $2 "*) ;;
        *)
            # In ticks of 1/100 s, from a number such as 1234.05.
            age=$((${up%.*} * 100 + 1${up#*.} - 100 - ${20}))
            [ "$age" -ge $((limit * 100)) ] || [ "${up%.*}" -ge "$stop" ] || return
            [ "$own" ] || own=$(tr '\000' ' ' <"/proc/$probe/cmdline")
            [ "$(tr '\000' ' ' <"/proc/$pid/cmdline")" != "$own" ] || return
            ;;
    esac
    late="$late$pid "
}

# limited COMMAND...: a command that the watchdog looks after; its first line on stderr is the section's detail.
limited() {
    { detail=$("$@" 2>&1 >&3 3>&- </dev/null); } 3>&1
    judge $?
}

# guarded SECONDS COMMAND...: the same for tools that talk to a driver, and may hang where no signal reaches
# them: what is ended then is a process that only copies, so that the output closes in any case.
# The last line is the exit status.
guarded() {
    limit=$1 begun=${up%.*}
    shift
    { "$@" 2>&1 </dev/null; printf '\n%s' "$?"; } | cat
    judge $?
    uptime
    [ $((${up%.*} - begun)) -lt "$limit" ] || status=timeout
}
