# SPDX-License-Identifier: MIT
# fish completion for duet(1): commands, options and values are what `duet complete` says.

function __duet_words
    set -l words (commandline -opc)
    set -l command record
    if test (count $words) -gt 1; and string match -qr '^[a-z]' -- $words[2]
        set command $words[2]
    end
    set -l values
    if string match -q -- '-*' $words[-1]
        set values (duet complete $command -- $words[-1] 2>/dev/null)
    end
    if test (count $values) -gt 0
        printf '%s\n' $values
        return
    end
    if test (count $words) -eq 1
        duet complete 2>/dev/null
    end
    duet complete $command 2>/dev/null
    if test $command = record
        duet complete record -- -p 2>/dev/null # numbers of JVMs, with what they run
    end
end

function __duet_wants_file
    set -l words (commandline -opc)
    contains -- $words[-1] -f --file --config --lock; or contains -- "$words[2]" convert diff
end

complete -c duet -f -n 'not __duet_wants_file' -a '(__duet_words)'
complete -c duet -F -n __duet_wants_file
