# --- where variables are set -----------------------------------------------------------------------------

# Lines with path and number, of files that are only ever searched, and of the files that those lines name. What
# else they hold (credentials, say) stays on the host.
mentions() {
    further=
    IFS=$nl
    for path in $interpreters; do
        path=${path%/bin/*}
        choose_reader "$path/"
        path=$path/etc/conda/activate.d/*.sh$nl$path/conda-meta/state$nl$path/bin/activate
        if [ "$reader" ]; then guest_scan=$guest_scan$nl$path; else further=$further$nl$path; fi
    done
    searched= system_files=
    set -- $scan_files $scan_home_paths $further
    unset IFS
    can_be_searched "$@" || return
    mentioned=$(ulimit -v 500000; grep -aHnsE "$scan_pattern" "$@" 2>&1 </dev/null)
    judge $?
    case $status$nl$mentioned in timeout* | *"${nl}grep: "*xhausted*) name_largest "$@"; return ;; esac
    name_further_files
    if [ "$further" ]; then
        IFS=$nl
        set -- $further
        unset IFS
        system_files=$further
        mentioned=$mentioned$nl$(grep -aHnsE "$scan_pattern" "$@" </dev/null)
    fi
    case $status in failed:[12]) status=ok ;; esac # no line matches, or a file is not there
    [ -z "$guest_scan" ] || [ "$status" != ok ] || guest_mentions
    at_jobs
    printf '%s\n' "$mentioned" | sed "$hide_values"
}

# A pipe or a device among them would be waited for: what it is, is said instead.
can_be_searched() { # path...
    for path; do
        [ -f "$path" ] || [ ! -e "$path" ] || [ -d "$path" ] || [ "$path" -ef /dev/null ] || {
            status=failed:1 detail="$path is a $(stat -L -c %F "$path"), and no regular file"
            return 1
        }
    done
}

# Where the search was not over in time, or its memory, the largest file is mostly why.
name_largest() { # path...
    largest=$(stat -L -c '%s %n' "$@" 2>/dev/null </dev/null | sort -rn | head -n 1)
    [ "$status" = timeout ] || status=failed:2
    [ "${largest%% *}" -le 4194304 ] || detail="${largest#* } has ${largest%% *} bytes"
}

# The commands of jobs of at(1). What stands in front of them is the environment of whoever made the job, which is
# left out with the lines that set it.
at_jobs() {
    set --
    for path in /var/spool/cron/atjobs/[A-Za-z=]?????????????  /var/spool/at/[A-Za-z=]????????????? /var/spool/atjobs/[A-Za-z=]?????????????; do
        [ ! -f "$path" ] || [ $# -ge 100 ] || set -- "$@" "$path"
    done
    [ $# -gt 0 ] || return 0
    mentioned=$mentioned$nl$(grep -aHnsE "$at_pattern" "$@" </dev/null | grep -v "=.*; export [A-Za-z_][A-Za-z0-9_]*\$")
}

# The files that systemd's units, PAM, Slurm and shells read: EnvironmentFile=, envfile=, conffile=, TaskProlog=, and
# what is sourced. Only below directories of the system: another path may be mounted when it is looked at.
name_further_files() {
    further= number=0
    set -f
    IFS=$nl
    for line in $mentioned; do
        case $line in
            *EnvironmentFile*=*) path=${line#*EnvironmentFile} path=${path#*=} ;;
            *envfile=*) path=${line#*envfile=} ;;
            *conffile=*) path=${line#*conffile=} ;;
            *TaskProlog=*) path=${line#*TaskProlog=} ;;
            *source\ /*) path=/${line#*source /} ;;
            *.\ /*) path=/${line#*. /} ;;
            *) continue ;;
        esac
        path=${path#"${path%%[! ]*}"} path=${path#[\"\']} path=${path#-} path=${path%%[\"\' \;]*}
        case $path in
            *[!A-Za-z0-9/._*@+-]* | */../* | /usr/share/*) ;;
            /etc/* | /usr/* | /opt/* | /run/* | /var/*)
                set +f
                for path in $path; do
                    case $nl$scan_files$nl$system_files$nl$searched$nl$further$nl in *"$nl$path$nl"*) continue ;; esac
                    [ -f "$path" ] && [ "$number" -lt 64 ] || continue
                    further=$further$nl$path number=$((number + 1))
                done
                set -f
                ;;
        esac
    done
    set +f
    unset IFS
}

# NAME=VALUE, "NAME=VALUE", NAME DEFAULT=VALUE, "NAME": "VALUE", setenv NAME VALUE, and what stands before @ in a URL.
# A name begins after what can be in none.
edge='\(^\|[^A-Za-z0-9_.-]\)'
hide_values="s/\\([\"']$secret=\\)[^\"']*/\\1<redacted>/g
s/\\($edge$secret=\\)\\(\"[^\"]*\"\\|'[^']*'\\|[^\"'<[:space:]][^\"'[:space:]]*\\)/\\1<redacted>/g
s/\\($edge$secret[[:space:]]*\\(DEFAULT\\|OVERRIDE\\)=\\)\\(\"[^\"]*\"\\|[^\"[:space:]]*\\)/\\1<redacted>/g
s/\\(\"$secret\"[[:space:]]*[:,][[:space:]]*\"\\)[^\"]*/\\1<redacted>/g
s/\\(\\(setenv\\|set -[a-zA-Z]*\\)[[:space:]][[:space:]]*$secret[[:space:]][[:space:]]*\\).*/\\1<redacted>/
s,://[^/@[:space:]]*@,://<redacted>@,g"

# What daemons that start jobs were started with, and hand on; of systemd's own environment, where one of them runs,
# what it gives to all services. Asking it by its private socket wakes nothing: it is PID 1.
service_environments() {
    chosen= launches=
    set -f
    IFS=$nl
    for line in $stats; do
        command=${line#*\(} command=${command%\)*}
        case $command in
            slurmd | slurmstepd | dockerd | containerd | kubelet | raylet | gcs_server | supervisord | 'ray::'*) launches=yes ;;
            systemd) case $line in /proc/1/*) continue ;; esac ;;
            *) continue ;;
        esac
        chosen=$chosen$nl${line%%/stat:*}/environ
    done
    set +f
    set -- $chosen
    unset IFS
    [ $# -gt 0 ] || { absent 'no daemon that starts jobs runs'; return; }
    grep -aHszE "^($variable_names)=" "$@" </dev/null | grep -avz ":$secret=" | head -c 1000000
    [ "$launches" ] || return 0
    printf 'a\000b\000' | grep -qzx b || { status=missing detail='the grep of this host does not know -z'; return; }
    [ -S /run/systemd/private ] && has systemctl || return 0
    systemctl show-environment 2>/dev/null </dev/null | grep -E "^($variable_names)=" | grep -v "^$secret=" |
        sed 's,^,/proc/1/manager:,'
}
