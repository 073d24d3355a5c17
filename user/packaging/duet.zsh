#compdef duet
# SPDX-License-Identifier: MIT
# zsh completion for duet(1): commands, options and values are what `duet complete` says.

# The numbers of JVMs, with what they run.
_duet_jvms() { # PROGRAM
	_duet_described jvm ${(f)"$($1 complete record -- -p 2>/dev/null)"}
}

# Of lines "word<TAB>help".
_duet_described() { # TAG LINES...
	local tag=$1
	shift
	local -a described
	described=(${${@//:/\\:}/$'\t'/:})
	[[ $tag == option ]] && _describe -o option described || _describe "$tag" described
}

_duet() {
	local program=$words[1] word=$words[CURRENT] before=$words[CURRENT-1] command=record
	local -a values
	(( CURRENT == 2 )) || [[ $words[2] != [a-z]* ]] || command=$words[2]
	case $before in
	-p|--pid) _duet_jvms $program; return ;;
	-f|--file|--config|--lock) _files; return ;;
	-*) values=(${(f)"$($program complete $command -- $before 2>/dev/null)"}) ;;
	esac
	if (( $#values )); then
		compadd -a values
	elif [[ $word == -* ]]; then
		_duet_described option ${(f)"$($program complete $command 2>/dev/null)"}
	else
		(( CURRENT != 2 )) || _duet_described command ${(f)"$($program complete 2>/dev/null)"}
		[[ $command != record ]] || _duet_jvms $program
		[[ $command != (convert|diff) ]] || _files
	fi
}

_duet "$@"
