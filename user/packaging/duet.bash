# SPDX-License-Identifier: MIT
# bash completion for duet(1): commands, options and values are what `duet complete` says.

_duet_jvms() {
	local exe
	for exe in /proc/[0-9]*/exe; do
		case $(readlink "$exe" 2>/dev/null) in
		*/java) exe=${exe%/exe} && echo "${exe##*/}" ;;
		esac
	done
}

# Cgroups of v2, as deep as people name them.
_duet_cgroups() {
	local top=/sys/fs/cgroup
	[ ! -d $top/unified ] || top=$top/unified
	find $top -mindepth 1 -maxdepth 3 -type d -printf '/%P\n' 2>/dev/null
}

_duet() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=record words=
	[[ ${COMP_WORDS[1]} != [a-z]* || $COMP_CWORD = 1 ]] || command=${COMP_WORDS[1]}
	case $before in
	--cgroup) words=$(_duet_cgroups) ;;
	--comm) words=$(cat /proc/[0-9]*/comm 2>/dev/null | sort -u) ;;
	-p | --pid) words=$(_duet_jvms) ;;
	-f | --file | --config | --lock) mapfile -t COMPREPLY < <(compgen -f -- "$word") && return ;;
	-*) words=$("$1" complete "$command" -- "$before" 2>/dev/null) ;;
	esac
	if [ -z "$words" ] && [[ $word == -* ]]; then
		words=$("$1" complete "$command" 2>/dev/null | cut -f 1)
	elif [ -z "$words" ] && [ "$command" = record ]; then
		words=$(_duet_jvms)
	elif [ -z "$words" ] && [[ $command = @(convert|diff) ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word") && return
	fi
	[ "$COMP_CWORD" != 1 ] || words+=" $("$1" complete 2>/dev/null | cut -f 1)"
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _duet duet
