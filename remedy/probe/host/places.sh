# --- where variables are set -----------------------------------------------------------------------------

# Lines with path and number, of files that are only ever searched, and of the files that those lines name. What
# else they hold (credentials, say) stays on the host. What cannot be searched has a line without a number, with the
# reason: what the others say is known all the same.
mentions() {
    further=
    IFS=$nl
    for path in $interpreters; do
        path=${path%/bin/*}
        choose_reader "$path/"
        path=$path/etc/conda/activate.d/*.sh$nl$path/conda-meta/state$nl$path/bin/activate
        if [ "$reader" ]; then guest_scan=$guest_scan$nl$path; else further=$further$nl$path; fi
    done
    searched= system_files= unsearched= mentioned=
    set -- $scan_files $scan_home_paths $further
    unset IFS
    search "$scan_pattern" "$@" || return
    name_further_files
    if [ "$further" ]; then
        IFS=$nl
        set -- $further
        unset IFS
        system_files=$further
        search "$scan_pattern" "$@" || return
    fi
    outline
    [ -z "$guest_scan" ] || guest_mentions
    at_jobs
    if may_tell_secrets; then mentioned=$(printf '%s\n' "$mentioned" | sed "$hide_values"); fi
    printf '%s\n' "$mentioned"
    [ -z "$unsearched" ] || printf '%s\n' "${unsearched#"$nl"}"
}

# search PATTERN PATH...: adds the lines that match to $mentioned. A file that cannot be searched is left out, and
# the others are searched: a pipe or a device, for it would be waited for; where the search was not over in time or
# in its memory, what is too large; what has more lines than are read.
search() {
    pattern=$1
    shift
    for path; do
        [ ! -e "$path" ] || [ -f "$path" ] || [ -d "$path" ] || [ "$path" -ef /dev/null ] ||
            leave_out "$path" "it is a $(stat -L -c %F "$path"), and no regular file"
    done
    if [ "$unsearched" ]; then on_the_rest search_regular "$@"; else search_regular "$@"; fi && return
    largest=4194304
    leave_out_larger "$@" || return
    on_the_rest search_regular "$@"
}

search_regular() { # path...
    # The patterns mean the same to both, and pcre(3), where grep has it, needs half the time.
    for kind in P E; do
        lines=$(ulimit -v 500000; grep "-aHns${kind}m" "$most_lines" "$pattern" "$@" 2>&1 </dev/null)
        judge $?
        case $nl$lines in *"${nl}grep: "*) ;; *) break ;; esac
    done
    case $status$nl$lines in timeout* | *"${nl}grep: "*xhausted*) return 1 ;; esac
    case $status in failed:[12]) status=ok ;; esac # no line matches, or a file is not there
    [ "${#lines}" -lt 300000 ] || leave_out_longest
    mentioned=$mentioned$nl$lines
}

most_lines=20000

# Of scripts that write settings at boot the words on which their lines depend, and nothing else of these lines.
outline() {
    case $mentioned in *sysctl* | */proc/sys/* | *'>'*/sys/* | *' mtu '*) ;; *) return ;; esac
    scripts=
    set -f
    IFS=$nl
    for line in $mentioned; do
        case ${line#*:} in *sysctl* | */proc/sys/* | *'>'*/sys/* | *' mtu '*) ;; *) continue ;; esac
        line=${line%%:*}
        case $line in
            /etc/network/if-* | /etc/NetworkManager/dispatcher.d/* | /etc/networkd-dispatcher/* | /etc/rc.local | /etc/rc.d/* | /etc/dhcp/*)
                case $scripts$nl in *"$nl$line$nl"*) ;; *) scripts=$scripts$nl$line ;; esac
                ;;
        esac
    done
    set -- $scripts
    unset IFS
    set +f
    [ $# -eq 0 ] || mentioned=$mentioned$nl$(grep -aHnoE "$outline_pattern" "$@" </dev/null)
}

leave_out() { # path, reason
    case $unsearched in *"$nl$1::"*) ;; *) unsearched=$unsearched$nl$1::$2 ;; esac
}

# on_the_rest FUNCTION PATH...: calls it with the paths that are not left out.
on_the_rest() {
    function=$1 kept=
    shift
    for path; do case $unsearched in *"$nl$path::"*) ;; *) kept=$kept$nl$path ;; esac; done
    set -f
    IFS=$nl
    set -- $kept
    unset IFS
    set +f
    [ $# -eq 0 ] || "$function" "$@"
}

# leave_out_larger PATH...: leaves out what has more than $largest bytes; 1 where nothing has.
leave_out_larger() {
    sizes=$(stat -L -c '%s %n' "$@" 2>/dev/null </dev/null)
    larger=
    set -f
    IFS=$nl
    for line in $sizes; do
        larger_than "$largest" "${line%% *}" || continue
        leave_out "${line#* }" "it has ${line%% *} bytes, which are too many"
        larger=yes
    done
    unset IFS
    set +f
    [ "$larger" ]
}

# Takes the lines of a file that has too many of them out of $lines.
leave_out_longest() {
    longest=$(printf '%s\n' "$lines" | awk -F : -v most="$most_lines" '
        { number[$1]++; size[$1] += length($0) }
        END { for (path in number) if (number[path] >= most || size[path] > 1000000) print path }')
    [ "$longest" ] || return 0
    set -f
    IFS=$nl
    for path in $longest; do leave_out "$path" 'it has more lines that matter here than are read'; done
    unset IFS
    set +f
    lines=$(printf '%s\n' "$lines" | awk -F : -v longest="$longest" '
        BEGIN { number = split(longest, paths, "\n"); for (i = 1; i <= number; i++) left[paths[i]] = 1 }
        !($1 in left)')
}

# The commands of jobs of at(1). What stands in front of them is the environment of whoever made the job, which is
# left out with the lines that set it.
at_jobs() {
    set --
    for path in /var/spool/cron/atjobs/[A-Za-z=]?????????????  /var/spool/at/[A-Za-z=]????????????? /var/spool/atjobs/[A-Za-z=]?????????????; do
        [ ! -f "$path" ] || [ $# -ge 100 ] || set -- "$@" "$path"
    done
    [ $# -gt 0 ] || return 0
    all=$mentioned mentioned=
    search "$at_pattern" "$@"
    mentioned=$all$nl$(printf '%s\n' "$mentioned" | grep -v "=.*; export [A-Za-z_][A-Za-z0-9_]*\$")
}

# The files that systemd's units, PAM, sudo, Slurm and shells read: EnvironmentFile=, envfile=, conffile=, env_file=,
# TaskProlog=, what is sourced, and what BASH_ENV names in the session.
name_further_files() {
    further= number=0
    set -f
    IFS=$nl
    for line in $mentioned; do
        case $line in
            *EnvironmentFile*=*) path=${line#*EnvironmentFile} path=${path#*=} ;;
            *envfile=*) path=${line#*envfile=} ;;
            *conffile=*) path=${line#*conffile=} ;;
            *env_file*=*) path=${line#*env_file} path=${path#*=} path=${path%%,*} ;;
            *TaskProlog=*) path=${line#*TaskProlog=} ;;
            *source\ /*) path=/${line#*source /} ;;
            *.\ /*) path=/${line#*. /} ;;
            *) continue ;;
        esac
        path=${path#"${path%%[! ]*}"} path=${path#[\"\']} path=${path#-} path=${path%%[\"\' \;]*}
        name_further "$path" || :
    done
    [ -z "$session_file" ] || name_further "$session_file" ||
        leave_out "$session_file" 'BASH_ENV names it in sessions over ssh, and it is below no directory of the system'
    set +f
    unset IFS
}

# Adds the files that a path or a pattern names to $further. Only below directories of the system, 1 elsewhere: another
# path may be mounted when it is looked at.
name_further() { # path
    case $1 in
        *[!A-Za-z0-9/._*@+-]* | */../*) return 1 ;;
        /usr/share/*) [ "$1" = "$session_file" ] || return 0 ;;
        /etc/* | /usr/* | /opt/* | /run/* | /var/*) ;;
        *) return 1 ;;
    esac
    set +f
    for path in $1; do
        case $nl$scan_files$nl$system_files$nl$searched$nl$further$nl in *"$nl$path$nl"*) continue ;; esac
        [ -e "$path" ] && [ ! -d "$path" ] && [ "$number" -lt 64 ] || continue
        further=$further$nl$path number=$((number + 1))
    done
    set -f
}

# Whether a line that was found sets something, or has a login in a URL, and what is set may be a secret.
may_tell_secrets() {
    setting=
    set -f
    IFS=$nl
    for line in $mentioned; do
        case $line in
            *://*@*) setting=@; break ;;
            *=* | *\"* | *setenv* | *'set -'*) setting=$setting$nl$line ;;
        esac
    done
    unset IFS
    set +f
    [ "$setting" = @ ] || hints_at_secret "$setting"
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
    # Which of them have any, and last whether it finds one of its own arguments, which only -z tells apart: mostly
    # that is all, and is known from one process.
    told=$(grep -lszE -e "^($variable_names)=" -e '^-lszE$' "$@" /proc/self/cmdline </dev/null)
    case $told in
        /proc/self/cmdline) ;;
        *"$nl"/proc/self/cmdline)
            grep -aHszE "^($variable_names)=" "$@" </dev/null | grep -avz ":$secret=" | head -c 1000000
            ;;
        *) status=missing detail='the grep of this host does not know -z'; return ;;
    esac
    [ "$launches" ] && [ -S /run/systemd/private ] && has systemctl || return 0
    given=$(systemctl show-environment 2>/dev/null </dev/null)
    more=
    set -f
    IFS=$nl
    for line in $given; do
        case $line in LANG=* | LANGUAGE=* | LC_* | PATH=*) ;; *) more=yes ;; esac
    done
    unset IFS
    set +f
    [ -z "$more" ] || printf '%s\n' "$given" | grep -E "^($variable_names)=" | grep -v "^$secret=" |
        sed 's,^,/proc/1/manager:,'
}
