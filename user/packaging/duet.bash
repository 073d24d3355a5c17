# SPDX-License-Identifier: MIT
# bash completion for duet(1): commands, options and values are what `duet complete` says.

# Adds the numbers of JVMs, and what they run. Numbers are shown with what runs there, unless only one is left.
_duet_jvms() { # PROGRAM WORD
	local pid name
	while IFS=$'\t' read -r pid name; do
		[[ $pid != "$2"* ]] || COMPREPLY+=("$pid  $name")
		[[ -z $2 || $name != "$2"* ]] || COMPREPLY+=("$name")
	done < <("$1" complete record -- -p 2>/dev/null)
	[[ ${#COMPREPLY[@]} -gt 1 && ${COMP_TYPE:-9} != 37 ]] || COMPREPLY=("${COMPREPLY[@]%%  *}")
}

# Cgroups of v2, as deep as people name them.
_duet_cgroups() {
	local top=/sys/fs/cgroup
	[ ! -d $top/unified ] || top=$top/unified
	find $top -mindepth 1 -maxdepth 3 -type d -printf '/%P\n' 2>/dev/null
}

_duet() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=record words= jvms=
	[[ ${COMP_WORDS[1]} != [a-z]* || $COMP_CWORD = 1 ]] || command=${COMP_WORDS[1]}
	case $before in
	--cgroup) words=$(_duet_cgroups) ;;
	--comm) words=$(cat /proc/[0-9]*/comm 2>/dev/null | sort -u) ;;
	-p | --pid) jvms=yes ;;
	-f | --file | --config | --lock) mapfile -t COMPREPLY < <(compgen -f -- "$word") && return ;;
	-*) words=$("$1" complete "$command" -- "$before" 2>/dev/null) ;;
	esac
	if [ -z "$words$jvms" ] && [[ $word == -* ]]; then
		words=$("$1" complete "$command" 2>/dev/null | cut -f 1)
	elif [ -z "$words" ] && [ "$command" = record ]; then
		jvms=yes
	elif [ -z "$words" ] && [[ $command = @(convert|diff) ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word") && return
	fi
	[ "$COMP_CWORD" != 1 ] || words+=" $("$1" complete 2>/dev/null | cut -f 1)"
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
	[ -z "$jvms" ] || _duet_jvms "$1" "$word"
}

complete -F _duet duet
