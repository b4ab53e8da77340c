"""`kubist completion`: completion of commands, flags and values in bash, zsh and fish.

The scripts ask `kubist completion -- WORD…` for candidates, so they stay correct after an update.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from kubist.cli import help
from kubist.cli.commands import all_commands
from kubist.cli.exits import FlagError
from kubist.cli.flag_list import Flag, of_kube_apiserver

FILES, DIRECTORIES, COMMAND_LINE = ":files", ":directories", ":command"
"""Lines that ask the shell to complete paths, or the command line of another program."""
SHELLS = ("bash", "zsh", "fish")
_COLOURS = ("auto", "always", "never")
_VALUES = {
    "authorization-mode": ("AlwaysAllow", "AlwaysDeny", "ABAC", "RBAC", "Node", "Webhook"),
    "color": _COLOURS,
    "endpoint-reconciler-type": ("lease", "none", "master-count"),
    "log-format": ("text", "json"),
    "logging-format": ("text", "json"),
    "output": ("text", "json"),
    "storage": ("memory", "disk"),
    "runtime-config": ("api/all=true", "api/beta=true", "api/ga=true"),
    "tls-min-version": ("VersionTLS12", "VersionTLS13"),
    "v": ("0", "1", "3", "4"),
}
_DIRECTORIES = frozenset(("cert-dir", "data-dir"))
_NO_PATHS = frozenset(("int", "ip", "duration", "portRange", "Level", "float", "float32", "bool"))


def complete(words: list[str]) -> list[str]:
    """Candidates for the last word, each with a description after a tab."""
    before, current = words[:-1], words[-1] if words else ""
    while before and before[0].startswith("--color"):
        before = before[1:] if "=" in before[0] else before[2:]
        if not before and words[-2] == "--color":
            return _matching(_COLOURS, current)
    if not before:
        if current.startswith("-"):
            flags = (Flag("color", "string", ""), Flag("help", "bool", ""), Flag("version", "bool", ""))
            return _flag_or_value(current, {flag.name: flag for flag in flags})
        return [
            f"{name}\t{summary}" for name, (_, summary) in all_commands().items() if name.startswith(current)
        ]
    command = before[0]
    if command == "help":
        return _matching(all_commands(), current) if len(before) == 1 else []
    if command == "completion":
        return _matching(SHELLS, current) if len(before) == 1 else []
    if command == "clusters" and len(before) == 1 and not current.startswith("-"):
        return _matching(("list", "create", "delete", "kubeconfig"), current)
    return _argument(command, before[1:], current)


def _argument(command: str, before: list[str], current: str) -> list[str]:
    """Candidates for an argument of a command."""
    if command not in all_commands():
        return []
    if command == "exec" and "--" in before:
        return [COMMAND_LINE]
    flags = {flag.name: flag for flag in _flags(command)}
    shorts = {f"-{flag.short}": flag for flag in flags.values() if flag.short}
    if before:
        last = before[-1]
        last_flag = shorts.get(last) or (flags.get(last[2:]) if last.startswith("--") else None)
        if last_flag is not None and last_flag.type != "bool" and not last_flag.type.startswith("version"):
            return _values(last_flag, current)
    if current.startswith("-"):
        return _flag_or_value(current, flags)
    return [FILES] if command in ("envtest", "validate", "replay") else []


def _flags(command: str) -> Iterable[Flag]:
    if command == "apiserver":
        return of_kube_apiserver().values()
    if command == "envtest":
        return (Flag("warm", "bool", "", "Start a helper, so that kube-apiserver starts faster."),)
    place = all_commands()[command][0].partition(":")[0]
    flags = getattr(import_module(f"kubist.cli.{place}"), "FLAGS", ())
    return tuple(flags[command] if isinstance(flags, dict) else flags)


def _flag_or_value(current: str, flags: dict[str, Flag]) -> list[str]:
    name, equals, value = current.partition("=")
    if equals:
        flag = flags.get(name.lstrip("-"))
        if flag is None:
            return []
        values = _values(flag, value) if flag.type != "bool" else _matching(("true", "false"), value)
        return [candidate if candidate.startswith(":") else f"{name}={candidate}" for candidate in values]
    known = {**flags, "help": Flag("help", "bool", "", "Show the help.")}
    return [f"--{flag.name}\t{flag.help}" for flag in known.values() if f"--{flag.name}".startswith(current)]


def _values(flag: Flag, current: str) -> list[str]:
    """Values of a flag. In a list, the last item is completed."""
    start, comma, item = current.rpartition(",")
    listed = start + comma
    if flag.name == "controllers":
        # Saves start-up time: only this flag needs the control loops.
        from kubist.cluster.control.manager import available

        names = sorted(loop.name for loop in available())
        return _matching(["*", *names, *(f"-{name}" for name in names)], item, listed)
    if flag.name == "feature-gates":
        # Saves start-up time: only this flag needs the table.
        from kubist.model import feature_gates

        gates = [f"{name}={value}" for name in sorted(feature_gates.known()) for value in ("true", "false")]
        return _matching(gates, item, listed)
    if flag.name.endswith("-admission-plugins"):
        # Saves start-up time: only this flag needs the list.
        from kubist.api.admission.order import ORDER

        return _matching(sorted(ORDER), item, listed)
    if "|" in flag.type:
        return _matching(flag.type.split("|"), current)
    if flag.name in _VALUES:
        return _matching(_VALUES[flag.name], item, listed)
    if flag.name in _DIRECTORIES:
        return [DIRECTORIES]
    return [] if flag.type in _NO_PATHS else [FILES]


def _matching(names: Iterable[str], current: str, before: str = "") -> list[str]:
    return [before + name for name in names if name.startswith(current)]


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
        problem = f"{arguments[0]!r} is no shell that it knows" if arguments else "the shell is missing"
        raise FlagError(f"{problem}: the usage is kubist completion {'|'.join(SHELLS)}")
    print(_SCRIPTS[arguments[0]], end="")
    return 0
