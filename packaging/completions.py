"""Completions of bash, zsh and fish, from the program's own help."""
from __future__ import annotations

from help_text import Help, read_all


def files(program: str) -> dict[str, str]:
    """By the path below /usr/share."""
    top, commands = read_all(program)
    return {
        "bash-completion/completions/kiln": _bash(top, commands), "zsh/vendor-completions/_kiln": _zsh(top, commands),
        "fish/vendor_completions.d/kiln.fish": _fish(top, commands)
    }


def _names(help: Help) -> list[str]:
    return [n for row in help.options for n in row.names]


def _bash(top: Help, commands: dict[str, Help]) -> str:
    cases = "\n".join(f'    {name}) words="{" ".join(_names(help))}" ;;' for name, help in commands.items())
    return f"""# bash completion of kiln, made from its --help
_kiln() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} command= words i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in {"|".join(commands)}) command=${{COMP_WORDS[i]}}; break ;; esac
  done
  case $command in
{cases}
    *) words="{" ".join([*commands, *_names(top)])}" ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"; [[ $word == -* ]] || compgen -f -- "$word")
}}
complete -o filenames -F _kiln kiln
"""


def _quoted(s: str) -> str:
    return "'" + s.replace("'", "'\\''") + "'"


def _zsh(top: Help, commands: dict[str, Help]) -> str:

    def options(help: Help) -> str:
        rows = []
        for row in help.options:
            about = row.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
            rows += [_quoted(f"{n}[{about}]" + (":value:_files" if row.takes else "")) for n in row.names]
        return " ".join(rows)

    described = " ".join(_quoted(f"{c.names[0]}:{c.help}") for c in top.commands)
    cases = "\n".join(f"    {name}) _arguments {options(help)} '*:file:_files' ;;" for name, help in commands.items())
    return f"""#compdef kiln
# zsh completion of kiln, made from its --help
_kiln() {{
  local -a commands=({described})
  local state
  _arguments -C {options(top)} '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands; _files ;;
    argument)
      case $words[1] in
{cases}
        *) _files ;;
      esac ;;
  esac
}}
_kiln "$@"
"""


def _fish(top: Help, commands: dict[str, Help]) -> str:
    lines = ["# fish completion of kiln, made from its --help"]
    none = f"not __fish_seen_subcommand_from {' '.join(commands)}"

    def option(row, condition: str) -> str:
        flags = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in row.names)
        return f"complete -c kiln -n {_quoted(condition)} {flags}{' -r' if row.takes else ''} -d {_fish_text(row.help)}"

    lines += [option(row, none) for row in top.options]
    lines += [f"complete -c kiln -n {_quoted(none)} -a {c.names[0]} -d {_fish_text(c.help)}" for c in top.commands]
    for name, help in commands.items():
        lines += [option(row, f"__fish_seen_subcommand_from {name}") for row in help.options]
    return "\n".join(lines) + "\n"


def _fish_text(s: str) -> str:
    return "'" + s.replace("\\", "\\\\").replace("'", "\\'") + "'"
