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

# The words of `duet record --help`, so that they are written down once.
_duet_options() {
	"$1" record --help 2>/dev/null | grep -oE -- '(^|[ ,])(-[A-Za-z]|--[a-z-]+)' | tr -d ' ,'
}

_duet() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
	case $before in
	-e | --event) words=cpu ;;
	-o | --output) words='collapsed flamegraph text' ;;
	--engine) words='auto bpf ctimer itimer' ;;
	--pairing) words='auto interval' ;;
	--signals) words='needed always never' ;;
	-p | --pid) words=$(_duet_jvms) ;;
	-f | --file) mapfile -t COMPREPLY < <(compgen -f -- "$word") && return ;;
	*)
		[[ $word == -* ]] && words=$(_duet_options "$1") || words=$(_duet_jvms)
		[ "$COMP_CWORD" = 1 ] && words+=' record check list version help'
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _duet duet
