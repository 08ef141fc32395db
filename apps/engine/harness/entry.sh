#!/bin/sh
# Entry point of every run: "$@" is the spider's command.
#
# stdout and stderr go through one FIFO, so their order is kept, and `cat` appends them to the spool. A plain redirect
# would not do: a program that opens /dev/stderr for writing would truncate the log. The exit code is the command's own;
# TERM and INT are passed on as TERM (shells start background commands with INT ignored); children that outlive the
# command may go on writing for 3 s.
#
# CLAW_OUT_FILE  the spool to append to   (default /claw/out)
# CLAW_TMP       where the FIFO is made   (default /tmp)
# Own exit codes: 74 output could not be written, 125 no place to write to, 126 and 127 command cannot be run,
# 143 told to end and the command said 0: it has not done all of its work, 153 output limit reached.

out=${CLAW_OUT_FILE:-/claw/out}
fifo=${CLAW_TMP:-/tmp}/.claw-entry.$$
child='' caught='' told=''

say() { printf '%s\n' "$1" >>"$out"; }

# shellcheck disable=SC2317 # called by the trap
pass_on() {
    caught=1 told=1
    [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
}

is_running() {
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    case $stat in *') Z '*) return 1 ;; esac
}

# Also where a shell goes that cannot fork because the command left too many processes behind: it would end with a code
# of its own. Without a process to wait by, the reader gets a moment for what is in the FIFO.
leave() {
    trap - EXIT
    looks=0
    while [ "$looks" -lt 20000 ] && is_running "$reader"; do looks=$((looks + 1)); done
    [ -z "$told" ] || [ "$code" -ne 0 ] || code=143
    exit "$code"
}

nap() { sleep "$1" 2>/dev/null || sleep 1; }

if ! true >>"$out"; then
    echo "entry.sh: cannot append to $out" >&2
    exit 125
fi
if [ $# -eq 0 ]; then
    say 'There is no command to run.'
    exit 127
fi
if ! command -v "$1" >/dev/null 2>&1; then
    if [ -e "$1" ]; then
        say "Command is not executable: $1"
        exit 126
    fi
    say "Command not found: $1"
    exit 127
fi
if ! mkfifo -m 600 "$fifo"; then
    say "Cannot make a FIFO in ${CLAW_TMP:-/tmp}."
    exit 125
fi

# A signal to the whole process group must not take the reader away from the command that still writes.
(trap '' TERM INT HUP && exec cat) <"$fifo" >>"$out" &
reader=$!
exec 4>"$fifo" # blocks until the reader is there, so the name may go
rm -f "$fifo"
(exec "$@") >&4 2>&4 4>&- &
child=$!
exec 4>&-
# Only now: a shell just forked loses a signal for which its parent has a trap. Until here TERM simply ends us.
trap pass_on TERM INT

wait "$child"
code=$?
while [ -n "$caught" ]; do # a trap cuts `wait` short; 127 says that the first answer was the command's own
    caught=''
    wait "$child"
    again=$?
    case $again in
        127 | -1) ;; # bash 5.2 says -1 when command and shell were signalled at once: the command's own code is lost
        *) code=$again ;;
    esac
done
child=''
trap leave EXIT

# A timer process would have to be killed in turn, and a shell just forked can lose that signal: so look and sleep.
looks=0
while is_running "$reader"; do
    looks=$((looks + 1))
    if [ "$looks" -le 5 ]; then
        nap 0.002
    elif [ "$looks" -le 65 ]; then
        nap 0.05
    else
        say 'Processes left behind by the command were still writing after 3 s; the log ends here.'
        kill -KILL "$reader" 2>/dev/null
        break
    fi
done
wait "$reader"
written=$?
case $written in
    0 | 137 | 143 | 130) ;; # read to the end, cut off above, or told again to stop
    153) code=153 ;;        # SIGXFSZ
    *) [ "$code" -ne 0 ] || code=74 ;;
esac
leave
