"""`kubist completion`: completion of commands, flags and values in bash, zsh and fish.

The scripts ask `kubist completion -- WORD…` for candidates, so they stay correct after an update.
"""

from __future__ import annotations

from kubist.cli import help
from kubist.cli.candidates import COMMAND_LINE, DIRECTORIES, FILES, SHELLS, complete
from kubist.cli.exits import FlagError

TITLE = """\
Prints a script that completes commands, flags and values when you press Tab.

Usage:
  kubist completion bash|zsh|fish

To use it, run one of these, and add it to the configuration of your shell:
  eval "$(kubist completion bash)"      # ~/.bashrc
  eval "$(kubist completion zsh)"       # ~/.zshrc, after compinit
  kubist completion fish | source       # ~/.config/fish/config.fish
"""
_BASH = f"""\
# Completion of kubist in bash. Made by `kubist completion bash`.
_kubist() {{
    local IFS=$'\\n' line word last=-1 i
    local -a words=()
    COMPREPLY=()
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        # bash splits --flag=value at the sign.
        if ((last >= 0)) && [[ ${{words[last]}} == --* ]] && [[ $word == "=" || ${{COMP_WORDS[i - 1]}} == "=" ]]; then
            words[last]+=$word
        else
            words+=("$word")
            last=$((last + 1))
        fi
    done
    word=${{words[last]}}
    [[ $word == --*=* ]] && word=${{word#*=}}
    while read -r line; do
        case $line in
        {COMMAND_LINE} | {FILES})
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$word"))
            ;;
        {DIRECTORIES})
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -d -- "$word"))
            ;;
        *)
            line=${{line%%$'\\t'*}}
            [[ ${{words[last]}} == --*=* ]] && line=${{line#*=}}
            COMPREPLY+=("$line")
            ;;
        esac
    done < <(kubist completion -- "${{words[@]}}" 2>/dev/null)
}}
complete -F _kubist kubist
"""
_ZSH = f"""\
#compdef kubist
# Completion of kubist in zsh. Made by `kubist completion zsh`.
_kubist() {{
    local line
    local -a found
    for line in "${{(@f)$(kubist completion -- "${{(@Q)words[2,CURRENT]}}" 2>/dev/null)}}"; do
        case $line in
        {COMMAND_LINE})
            shift "words[(i)--]" words
            ((CURRENT = $#words))
            _normal
            return
            ;;
        {FILES})
            compset -P '--*='
            _files
            return
            ;;
        {DIRECTORIES})
            compset -P '--*='
            _files -/
            return
            ;;
        *$'\\t'*)
            found+=("${{${{line%%$'\\t'*}}//:/\\\\:}}:${{line#*$'\\t'}}")
            ;;
        ?*)
            found+=("${{line//:/\\\\:}}")
            ;;
        esac
    done
    _describe -V kubist found
}}
if [[ $funcstack[1] == _kubist ]]; then
    _kubist "$@"
else
    compdef _kubist kubist
fi
"""
_FISH = f"""\
# Completion of kubist in fish. Made by `kubist completion fish`.
function __kubist_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l current (commandline -ct)
    set -l path (string replace -r -- '^--[^=]*=' '' "$current")
    set -l start (string match -r -- '^--[^=]*=' "$current")
    for line in (kubist completion -- $words "$current" 2>/dev/null)
        switch $line
            case {COMMAND_LINE}
                set -l at (contains -i -- -- $words)
                complete -C (string join ' ' -- $words[(math $at + 1)..-1] "$current")
            case {FILES}
                printf '%s\\n' "$start"(__fish_complete_path "$path")
            case {DIRECTORIES}
                printf '%s\\n' "$start"(__fish_complete_directories "$path")
            case '*'
                printf '%s\\n' $line
        end
    end
end
complete -c kubist -f -a '(__kubist_complete)'
"""
_SCRIPTS = dict(zip(SHELLS, (_BASH, _ZSH, _FISH), strict=True))


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--"]:
        print("".join(f"{line}\n" for line in complete(arguments[1:])), end="")
        return 0
    if arguments in (["--help"], ["-h"]):
        return help.show(TITLE.rstrip(), ())
    if len(arguments) != 1 or arguments[0] not in _SCRIPTS:
        given = f"{arguments[0]!r} is no shell that it knows" if arguments else "the shell is missing"
        raise FlagError(f"{given}: the usage is kubist completion {'|'.join(SHELLS)}")
    print(_SCRIPTS[arguments[0]], end="")
    return 0
