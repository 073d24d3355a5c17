# SPDX-License-Identifier: MIT
# bash completion for duet(1)

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

# The words of a command's --help, so that they are written down once.
_duet_options() {
	"$1" "$2" --help 2>/dev/null | grep -oE -- '(^|[ ,])(-[A-Za-z]|--[a-z-]+)' | tr -d ' ,' | sort -u
}

_duet() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
	case $before in
	-e | --event) words='cpu page-faults context-switches' ;;
	-o | --output) words='col collapsed flamegraph text' ;;
	--engine) words='auto bpf ctimer itimer' ;;
	--pairing) words='auto interval' ;;
	--signals) words='needed always never' ;;
	--by) words='container process thread container,process process,thread container,process,thread' ;;
	--cgroup) words=$(_duet_cgroups) ;;
	--comm) words=$(cat /proc/[0-9]*/comm 2>/dev/null | sort -u) ;;
	-p | --pid) words=$(_duet_jvms) ;;
	-f | --file | --config | --lock) mapfile -t COMPREPLY < <(compgen -f -- "$word") && return ;;
	*)
		case ${COMP_WORDS[1]} in
		daemon | status | check | list | version | help) words=$(_duet_options "$1" "${COMP_WORDS[1]}") ;;
		*) if [[ $word == -* ]]; then words=$(_duet_options "$1" record); else words=$(_duet_jvms); fi ;;
		esac
		[ "$COMP_CWORD" = 1 ] && words+=' record daemon status check list version help'
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _duet duet
