#!/bin/bash
# SPDX-License-Identifier: MIT
# Every wrong usage has an exit code, one sentence that names what is wrong and the way out, and no output file.
. "$(dirname "$0")/lib.sh"

# Words of the rows: SELF is a process that is no JVM, NONE a pid that nobody has, AN and ANOTHER are files of profiles,
# CONF is the configuration in front of the row.
rows() {
	cat <<'EOF'
# the command
2 | recrod -p SELF                               | unknown command 'recrod': did you mean duet record
2 | teapot                                       | unknown command 'teapot': duet help shows
2 | check teapot                                 | 'teapot': duet check takes no words
2 | status teapot                                | 'teapot' is not a process id
2 | complete teapot                              | unknown command 'teapot'
2 | help recrod                                  | unknown command 'recrod': did you mean duet record
# options
2 | record --durration 5 -p SELF                 | unknown option '--durration': did you mean --duration
2 | record --dur=5 -p SELF                       | unknown option '--dur=5': did you mean --duration
2 | record -duration 5 -p SELF                   | unknown option '-duration': did you mean --duration
2 | record -file=x -p SELF                       | unknown option '-file=x': did you mean --file
2 | record --colour -p SELF                      | unknown option '--colour': --help lists
2 | record -Q -p SELF                            | unknown option '-Q': --help lists
2 | record -p SELF --host=yes                    | option '--host' takes no value
2 | record -p                                    | option '-p' needs a value [(]PID
2 | record -p SELF --freq                        | option '--freq' needs a value
2 | record -p SELF -f ''                         | -f '': the value must not be empty
2 | convert --fron 1s AN x.html                  | did you mean --from
2 | diff --nomalize AN ANOTHER x.html            | unknown option '--nomalize'
2 | daemon --cofnig x                            | did you mean --config
# targets
2 | record -d 1                                  | nothing to profile: give -p PID
2 | record -d 1 --                               | nothing to profile: give -p PID.* -- CMD
2 | record -p nobody.runs.this -d 1              | no JVM runs 'nobody.runs.this': `duet list` shows
2 | nobody-runs-this.jar -d 1                    | no JVM runs 'nobody-runs-this.jar'
2 | record -d 5 java -jar x.jar                  | java is a program.* after --: duet record -d 5 -- java -jar x.jar
2 | record java -Xmx1g Main                      | duet record -- java -Xmx1g Main
2 | record sleep 5                               | duet record -- sleep 5
2 | sleep 5                                      | unknown command .sleep.: to profile a program
2 | record -p SELF --host                        | more than one kind of target
2 | record --comm a --cgroup b                   | more than one kind of target
2 | record -p 0                                  | '0' is not a process id
2 | record -p -5                                 | '-5' is not a process id
2 | record -p 12,                                | '' is not a process id
2 | record -p 99999999999999999999               | '99999999999999999999' is not a process id
1 | record -p NONE -f x.html                     | no process NONE: it may have ended
1 | record --container nobody-has-it -f x.html   | nobody-has-it
1 | record --cgroup /nobody/has/it -f x.html     | no cgroup '/nobody/has/it'
2 | record -p SELF --leave-alone x               | --leave-alone is for --host
2 | record --host --leave-alone user:nobody-     | no user 'nobody-'
2 | record --host --leave-alone uid:x            | 'x' is not a user's number
2 | record -p SELF --group root                  | --group is for --host
# events
2 | record -p SELF -e coffee                     | unknown event 'coffee': `duet list`
2 | record -p SELF -e cup                        | unknown event 'cup': did you mean cpu
2 | record -p SELF -e cpu,native-mem             | unknown event 'native-mem': did you mean nativemem
2 | record -p SELF -e CPU                        | unknown event 'CPU': did you mean cpu
2 | record -p SELF -e cpu,                       | -e cpu,: the name of an event is missing
2 | record -p SELF -e cpu,cpu                    | event 'cpu' is given twice
2 | record -p SELF -e cpu -e lock,cpu            | -e cpu,lock,cpu: event 'cpu' is given twice
2 | record -p SELF -e cpu=1parsec                | -e cpu=1parsec
2 | record -p SELF -e wall,offcpu                | wall has the samples of offcpu
2 | record -p SELF -i 1parsec                    | -i 1parsec
2 | record -p SELF -i 1ns                        | -i 1ns
2 | record -p SELF -i 1ms --freq 5               | -i and --freq both set
2 | record -p SELF --freq 100001                 | from 1 to 100000
2 | record -p SELF -e alloc --freq 5             | --freq is for cpu
2 | record -p SELF --wakers                      | --wakers is about the time off CPU: add -e offcpu
2 | record -p SELF --off-cpu 2s..1s -e wall      | the first length is longer
2 | record -p SELF --holders                     | add -e lock
2 | record -p SELF --tlab                        | add -e alloc
2 | record -p SELF --survivors 2                 | add --live
2 | record -p SELF --trace x                     | names no Java method
2 | record -p SELF -e alloc --agent never        | --agent never: alloc comes from the agent
1 | record -p SELF -e alloc -f x.html            | process SELF [(].*[)] is not a JVM: only JVMs have samples of alloc
1 | record -p SELF -e nativemem,lock -f x.html   | not a JVM: only JVMs have samples of nativemem, lock
1 | record -p SELF --leak 4k -f x.html           | not a JVM: only JVMs have samples of leak
1 | record -p SELF --live -f x.html              | not a JVM: only JVMs have samples of live
1 | record -e lock -f x.html -- true             | nothing was recorded: no JVM ran, and only JVMs have samples of lock
# output
2 | record -p SELF -f x.svg                      | x.svg: duet writes no pictures: name the file x.html
2 | record -p SELF -f a/x.PNG -o flamegraph      | a/x.PNG: duet writes no pictures: name the file a/x.html
2 | convert AN x.pdf                             | x.pdf: duet writes no pictures
2 | diff AN ANOTHER x.svg                        | x.svg: duet writes no pictures
2 | record -p SELF -f x.json                     | x.json: no format has this ending: .* x.otlp.json or
2 | record -p SELF -f x.pb                       | no format has this ending: name the file x.pb.gz,
2 | record -p SELF -f x.htmll                    | x.htmll: no format has this ending: name the file x.html
2 | convert AN x.heatmap                         | name the file x.heatmap.html
2 | record -p SELF --continuous -f x.html        | --continuous writes a file for each window into a folder
2 | record -p SELF -o svg                        | unknown format 'svg': flamegraph is a page
2 | record -p SELF -o flame                      | unknown format 'flame': did you mean flamegraph
2 | record -p SELF -o papyrus                    | unknown format 'papyrus': `duet list`
2 | record -p SELF -o text,text                  | names the format 'text' twice
2 | record -p SELF -o jfr,html -f a -f b -f c    | 2 formats and 3 files
2 | record -p SELF -e cpu,alloc -o collapsed     | has a file for each event: give -f
1 | record -p SELF -f /nobody/has/it.html        | /nobody/has/it.html
2 | record -p SELF --max-file 1m -f x.html       | --max-file is for one recording of the format duet
2 | record -p SELF --jfrsync default -f x.html   | --jfrsync is for one JVM and a JFR file
2 | record -p SELF --window 5s                   | for --continuous
2 | record -p SELF --total --samples             | exclude each other
2 | record -p SELF --by container,color          | --by 'container,color'
2 | record -p SELF -I '(' --regex                | --regex
2 | convert AN                                   | usage: duet convert IN
2 | convert --event cpu --wall AN x.html         | exclude each other
1 | convert no-such-file x.html                  | no-such-file
1 | convert --event alloc AN x.html              | alloc
2 | diff AN                                      | takes two profiles
2 | annotate Main                                | takes a name and recordings
# the rest
2 | record -p SELF -d 0                          | -d '0'
2 | record -p SELF -d soon                       | -d 'soon'
2 | record -p SELF -j 0                          | -j '0'
2 | record -p SELF --engine steam                | unknown engine 'steam'.*bpf
2 | record -p SELF --signals maybe               | unknown --signals 'maybe': needed, always
2 | record -p SELF --agent maybe                 | unknown --agent 'maybe': needed, always
2 | record -p SELF --pairing maybe               | unknown pairing 'maybe'
2 | record -p SELF --max-memory 1m               | at least 32m are needed
2 | record -p SELF --max-overhead 200            | at most 100
1 | record -p SELF --target-cpu 4095 -f x.html   | cpu: there is no such CPU, or it is offline: /sys/devices
1 | record -d 1 -- /no/such/program              | /no/such/program
# the configuration: its line comes first
= | widow = 5s
2 | daemon --check --config CONF                 | conf:1: unknown word 'widow': did you mean window
= | cpu-max = 5
2 | daemon --check --config CONF                 | conf:1: unknown word 'cpu-max': duet.conf
= | event = cup
2 | daemon --check --config CONF                 | conf:1: -e cup: unknown event 'cup': did you mean cpu
= | pid = 5
2 | daemon --check --config CONF                 | conf:1: .*'pid' is not allowed
= | window
2 | daemon --check --config CONF                 | conf:1: .*is not of the form "word = value"
EOF
}

check_row() { # CODE COMMAND PATTERN
	local words
	eval "words=($(sed "s|SELF|$self|; s|NONE|4194303|; s|ANOTHER|$here/b.collapsed|; s|AN |$here/a.collapsed |
		s|AN\$|$here/a.collapsed|; s|CONF|$here/conf|" <<<"$2"))"
	(cd "$here/folder" && run_duet "${words[@]}" && echo "$status" >"$here/status")
	status=$(cat "$here/status")
	[ "$status" = "$1" ] || fail "duet $2: exit code $status, not $1: $(cat "$here/stderr")"
	grep -qE -- "$(sed "s|SELF|$self|; s|NONE|4194303|" <<<"$3")" "$here/stderr" ||
		fail "duet $2: the message does not say \"$3\": $(cat "$here/stderr")"
	[ "$(grep -c . "$here/stderr")" -le 2 ] || fail "duet $2: more than a sentence: $(cat "$here/stderr")"
	[ ! -s "$here/stdout" ] || fail "duet $2: an error wrote to stdout"
	[ -z "$(ls -A "$here/folder")" ] || fail "duet $2: it has written $(ls -A "$here/folder")"
}

case_table() {
	need_bpf
	local code command pattern rows=0
	sleep 300 &
	self=$!
	jvms+=("$self")
	mkdir "$here/folder"
	echo 'main;f 5' | tee "$here/a.collapsed" >"$here/b.collapsed"
	while IFS='|' read -r code command pattern; do
		case $code in
		'#'*) continue ;;
		=*) echo "$command" >"$here/conf" && continue ;;
		esac
		check_row "${code% }" "$(sed 's/^ *//; s/ *$//' <<<"$command")" "${pattern# }"
		rows=$((rows + 1))
	done < <(rows)
	expect "rows" $rows '>=' 60
}

run_cases "$@"
