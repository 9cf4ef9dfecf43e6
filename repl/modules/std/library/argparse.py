"""argparse: the arguments of a script."""
import os as _os
import sys as _sys

SUPPRESS = "==SUPPRESS=="
OPTIONAL, ZERO_OR_MORE, ONE_OR_MORE, REMAINDER = "?", "*", "+", "..."


class ArgumentError(Exception):
    pass


class ArgumentTypeError(Exception):
    pass


class Namespace:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def __repr__(self):
        return "Namespace(" + ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items()) + ")"

    def __eq__(self, other):
        return isinstance(other, Namespace) and self.__dict__ == other.__dict__

    def __contains__(self, key):
        return key in self.__dict__


class HelpFormatter:
    # A class attribute in place of methods: parsers ask these two things alone.
    show_defaults = False
    keep_lines = False


class ArgumentDefaultsHelpFormatter(HelpFormatter):
    show_defaults = True


class RawDescriptionHelpFormatter(HelpFormatter):
    keep_lines = True


class RawTextHelpFormatter(RawDescriptionHelpFormatter):
    pass


class MetavarTypeHelpFormatter(HelpFormatter):
    pass


class BooleanOptionalAction:
    # A mark for add_argument(); there are no classes of actions to derive from.
    pass


class Action:
    def __init__(self, option_strings, dest, nargs=None, const=None, default=None, type=None, choices=None,
                 required=False, help=None, metavar=None, action="store"):
        self.option_strings = option_strings
        self.dest = dest
        self.nargs = nargs
        self.const = const
        self.default = default
        self.type = type
        self.choices = choices
        self.required = required
        self.help = help
        self.metavar = metavar
        self.action = action

    def takes_nothing(self):
        return self.nargs == 0

    def of_value(self):
        """What stands for one value in texts."""
        if isinstance(self.metavar, str):
            return self.metavar
        if self.choices is not None:
            # Choices come before the name, as the user has to type one of them.
            return "{" + ",".join(str(c) for c in self.choices) + "}"
        return self.dest.upper() if self.option_strings else self.dest

    def shown(self):
        """What stands for its values in texts."""
        name = self.of_value()
        if self.nargs == 0:
            return ""
        if self.nargs == "?":
            return f"[{name}]"
        if self.nargs == "*":
            return f"[{name} ...]"
        if self.nargs == "+":
            return f"{name} [{name} ...]"
        if self.nargs == "...":
            return "..."
        if isinstance(self.nargs, int):
            names = self.metavar if isinstance(self.metavar, tuple) else [name] * self.nargs
            return " ".join(names)
        return name

    def title(self):
        return "/".join(self.option_strings) or (self.metavar if isinstance(self.metavar, str) else self.dest)


class _Group:
    def __init__(self, parser, title=None, exclusive=False, required=False):
        self._parser, self.title, self.exclusive, self.required = parser, title, exclusive, required
        self.actions = []

    def add_argument(self, *names, **options):
        action = self._parser.add_argument(*names, **options)
        self.actions.append(action)
        if self.title:
            # For the sections of the help; words are read by the parser alone.
            action.group = self.title
        return action

    def add_argument_group(self, title=None, description=None):
        return self._parser.add_argument_group(title, description)

    def add_mutually_exclusive_group(self, required=False):
        return self._parser.add_mutually_exclusive_group(required)

    def set_defaults(self, **kwargs):
        self._parser.set_defaults(**kwargs)


class _Parsers:
    def __init__(self, parser, dest, required):
        self._parser, self.dest, self.required = parser, dest, required
        self.choices = {}
        self.helps = {}

    def add_parser(self, name, *, help=None, aliases=(), **kwargs):
        # Of the parser's own class, so that one that a script derives has its error() here too.
        made = type(self._parser)(prog=f"{self._parser.prog} {name}", **kwargs)
        for n in (name,) + tuple(aliases):
            self.choices[n] = made
        self.helps[name] = help
        return made


class ArgumentParser:
    def __init__(self, prog=None, usage=None, description=None, epilog=None, parents=(), formatter_class=HelpFormatter,
                 prefix_chars="-", argument_default=None, conflict_handler="error", add_help=True, allow_abbrev=True,
                 fromfile_prefix_chars=None, exit_on_error=True):
        if prefix_chars != "-" or conflict_handler != "error" or fromfile_prefix_chars is not None:
            # Refused rather than ignored: the script would read other arguments than it meant.
            raise NotImplementedError("parsers have no prefix_chars=, conflict_handler= and fromfile_prefix_chars=")
        self.prog = prog or _os.path.basename(_sys.argv[0] if _sys.argv else "kiln")
        self.usage, self.description, self.epilog = usage, description, epilog
        self._descriptions = {}  # of groups, by their titles
        self.formatter_class = formatter_class
        self.argument_default = argument_default
        self.allow_abbrev = allow_abbrev
        self._actions, self._exclusive, self._defaults, self._parsers = [], [], {}, None
        if add_help:
            self.add_argument("-h", "--help", action="help", help="show this help message and exit")
        for parent in parents:
            for action in parent._actions:
                # Each parser has its own -h.
                if action.action != "help":
                    self._actions.append(action)
            self._defaults.update(parent._defaults)

    # --- what there is
    def add_argument(self, *names, **options):
        options_given = [n for n in names if n.startswith("-")]
        kind = options.pop("action", "store")
        dest = options.pop("dest", None)
        if isinstance(kind, type) and kind is not BooleanOptionalAction:
            raise NotImplementedError("actions of classes of one's own are not supported: use type= or the values "
                                      "after parse_args()")
        if not options_given:
            if len(names) > 1:
                raise ValueError("a positional argument has one name")
            dest = names[0] if names else dest
        elif dest is None:
            # The first long option gives the name, as `--batch-size` gives batch_size.
            long = [n for n in options_given if n.startswith("--")] or options_given
            dest = long[0].lstrip("-").replace("-", "_")
        if "default" not in options and self.argument_default is not None:
            options["default"] = self.argument_default
        version = options.pop("version", None)
        if kind in ("store_true", "store_false"):
            # The options that are given win over the default of the kind, and not over its const.
            options = {"default": kind == "store_false", **options, "const": kind == "store_true", "nargs": 0}
        elif kind in ("store_const", "append_const", "count", "help", "version"):
            options["nargs"] = 0
        elif kind is BooleanOptionalAction:
            options["nargs"] = 0
            kind = "boolean"
            options_given = options_given + ["--no-" + n[2:] for n in options_given if n.startswith("--")]
        elif kind not in ("store", "append", "extend"):
            raise ValueError(f'unknown action "{kind}"')
        # Neither leaves a value in the result.
        if kind in ("help", "version"):
            options["default"] = SUPPRESS
        if kind == "version":
            options.setdefault("help", "show program's version number and exit")
        required = options.pop("required", None)
        nargs = options.get("nargs")
        if required is None:
            # A positional is required where it takes at least one word.
            required = not options_given and nargs not in ("?", "*", "...")
        action = Action(options_given, dest, required=required, action=kind, **options)
        action.version, action.group = version, None
        for other in self._actions:
            if set(other.option_strings) & set(options_given):
                raise ArgumentError(f"argument {action.title()}: conflicting option string: {options_given[0]}")
        self._actions.append(action)
        return action

    def add_argument_group(self, title=None, description=None):
        self._descriptions[title] = description
        return _Group(self, title)

    def add_mutually_exclusive_group(self, required=False):
        group = _Group(self, None, True, required)
        self._exclusive.append(group)
        return group

    def add_subparsers(self, *, dest=None, required=False, title=None, help=None, metavar=None, description=None,
                       **kwargs):
        self._parsers = _Parsers(self, dest, required)
        return self._parsers

    def set_defaults(self, **kwargs):
        self._defaults.update(kwargs)
        # Both ways: those that exist get it here, those that come find it in `_defaults`.
        for action in self._actions:
            if action.dest in kwargs:
                action.default = kwargs[action.dest]

    def get_default(self, dest):
        for action in self._actions:
            if action.dest == dest:
                return action.default
        return self._defaults.get(dest)

    # --- reading
    def parse_args(self, args=None, namespace=None):
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error("unrecognized arguments: " + " ".join(unknown))
        return found

    def parse_known_args(self, args=None, namespace=None):
        words = list(_sys.argv[1:] if args is None else args)
        space = Namespace() if namespace is None else namespace
        try:
            unknown = self._parse(words, space)
        except ArgumentError as e:
            self.error(str(e))
        return space, unknown

    parse_intermixed_args = parse_args

    def _option(self, word):
        """The action that an option names, the option itself, and a value behind '='."""
        name, mark, value = word.partition("=")
        for action in self._actions:
            # The whole word first: an option may have '=' in its name.
            if word in action.option_strings:
                return action, word, None
        for action in self._actions:
            if name in action.option_strings and mark:
                return action, name, value
        if word.startswith("--"):
            if not self.allow_abbrev:
                return None
            # Any beginning that fits one option alone is enough, as in Python.
            near = [(a, o) for a in self._actions for o in a.option_strings if o.startswith(name)]
            if len(near) > 1 and len({id(a) for a, _ in near}) > 1:
                raise ArgumentError(f"ambiguous option: {word} could match " + ", ".join(o for _, o in near))
            return (near[0][0], near[0][1], value if mark else None) if near else None
        # A letter with its value in the same word.
        for action in self._actions:  # -n5 and -vx
            if len(word) > 2 and word[:2] in action.option_strings:
                return action, word[:2], word[2:]
        return None

    def _is_value(self, word):
        """Could it be the value of an option or a positional?"""
        # '-' alone is stdin by custom, and a text with a blank was quoted by somebody.
        if not word.startswith("-") or word == "-" or " " in word:
            return True
        # A number is a value unless the parser has an option such as -1. Python means digits with at most a point in them:
        # -inf and -1e5 are options for it.
        whole, point, part = word[1:].partition(".")
        if not (part.isdecimal() and (not whole or whole.isdecimal()) if point else whole.isdecimal()):
            return False
        return not any(o[1:2].isdigit() for a in self._actions for o in a.option_strings)

    def _parse(self, words, space):
        # Before any word is read: an option's own default must not overwrite what it gave.
        for action in self._actions:
            if action.default is not SUPPRESS and not hasattr(space, action.dest):
                setattr(space, action.dest, action.default)
        for name, value in self._defaults.items():
            if not hasattr(space, name):
                setattr(space, name, value)
        positionals = [a for a in self._actions if not a.option_strings]
        seen, unknown, i = [], [], 0
        while i < len(words):
            word = words[i]
            if word == "--" or self._is_value(word):
                behind = words[i + 1:] if word == "--" else None
                run = []
                while behind is None and i < len(words) and words[i] != "--" and self._is_value(words[i]):
                    run.append(words[i])
                    i += 1
                if behind is not None or (i < len(words) and words[i] == "--"):
                    # Behind '--' everything is positional.
                    run += words[i + 1:]
                    i = len(words)
                # The word that chooses a parser comes behind all positionals.
                if self._parsers and not positionals:
                    name = run[0]
                    if name not in self._parsers.choices:
                        listed = ", ".join(repr(c) for c in self._parsers.choices)
                        raise ArgumentError(f"argument {self._parsers.dest or 'command'}: invalid choice: {name!r} "
                                            f"(choose from {listed})")
                    if self._parsers.dest:
                        setattr(space, self._parsers.dest, name)
                    rest = run[1:] + words[i:]
                    # The rest belongs to it alone, with options of its own.
                    unknown += self._parsers.choices[name]._parse_into(rest, space)
                    i = len(words)
                    self._chosen = True
                    continue
                unknown += self._give(positionals, run, space, seen)
                continue
            found = self._option(word)
            if found is None:
                unknown.append(word)
                i += 1
                continue
            i = self._run_option(found, words, i, space, seen)
        self._finish(positionals, space, seen)
        return unknown

    def _parse_into(self, words, space):
        try:
            return self._parse(words, space)
        except ArgumentError as e:
            self.error(str(e))

    def _give(self, positionals, run, space, seen):
        while positionals and run:
            action = positionals[0]
            # Those that follow keep the least that they need; what repeats takes all else.
            needed = sum(p.nargs if isinstance(p.nargs, int) else 0 if p.nargs in ("?", "*", "...") else 1
                         for p in positionals[1:])
            room = len(run) - needed
            if action.nargs is None:
                take = 1
            elif isinstance(action.nargs, int):
                take = action.nargs
            elif action.nargs == "?":
                take = min(1, max(room, 0))
            else:
                take = max(room, 1 if action.nargs == "+" else 0)
            if isinstance(action.nargs, int) and len(run) < take:
                # Left for the error about what is missing, which names it.
                break
            self._store(action, run[:take], space, None, seen)
            run = run[take:]
            positionals.pop(0)
        # What may be empty is done with when the words end.
        while positionals and positionals[0].nargs in ("?", "*", "...") and not run:
            self._leave_out(positionals.pop(0), space)
        return run

    def _leave_out(self, action, space):
        if action.nargs == "*" and action.default is None:
            # Python leaves an empty list rather than None here.
            setattr(space, action.dest, [])

    def _run_option(self, found, words, i, space, seen):
        action, name, value = found
        i += 1
        if action.nargs == 0:
            self._store(action, [], space, name, seen)
            if value is not None:
                if name.startswith("--"):
                    raise ArgumentError(f"argument {action.title()}: ignored explicit argument {value!r}")
                # -vx: the letters behind are options of their own
                following = self._option("-" + value)
                if following is None:
                    raise ArgumentError(f"argument {action.title()}: ignored explicit argument {value!r}")
                # One step back, which the call adds again.
                return self._run_option(following, words, i - 1, space, seen)
            return i
        values = [] if value is None else [value]
        limit = action.nargs if isinstance(action.nargs, int) else 1 if action.nargs in (None, "?") else None
        # A value behind '=' is the only one.
        if value is None:
            while i < len(words) and (limit is None or len(values) < limit):
                # '...' takes all that follows, options too.
                if action.nargs != "..." and (words[i] == "--" or not self._is_value(words[i])):
                    break
                values.append(words[i])
                i += 1
        least = limit if isinstance(action.nargs, int) else 1 if action.nargs in (None, "+") else 0
        if len(values) < least:
            wanted = "one argument" if action.nargs is None else "at least one argument" if action.nargs == "+" \
                else f"{least} argument" + ("s" if least > 1 else "")
            raise ArgumentError(f"argument {action.title()}: expected {wanted}")
        self._store(action, values, space, name, seen)
        return i

    def _convert(self, action, word):
        value = word
        # A default is often no text, and stands as it is.
        if action.type is not None and isinstance(word, str):
            try:
                value = action.type(word)
            except ArgumentTypeError as e:
                raise ArgumentError(f"argument {action.title()}: {e}")
            except (TypeError, ValueError):
                kind = getattr(action.type, "__name__", repr(action.type))
                raise ArgumentError(f"argument {action.title()}: invalid {kind} value: {word!r}")
        if action.choices is not None and value not in action.choices:
            listed = ", ".join(repr(c) for c in action.choices)
            raise ArgumentError(f"argument {action.title()}: invalid choice: {value!r} (choose from {listed})")
        return value

    def _store(self, action, words, space, name, seen):
        seen.append(action)
        kind, dest = action.action, action.dest
        if kind == "help":
            self.print_help()
            self.exit()
        if kind == "version":
            print(action.version.replace("%(prog)s", self.prog))
            self.exit()
        if kind in ("store_true", "store_false", "store_const"):
            return setattr(space, dest, action.const)
        if kind == "boolean":
            return setattr(space, dest, not name.startswith("--no-"))
        if kind == "count":
            return setattr(space, dest, (getattr(space, dest, None) or 0) + 1)
        if kind == "append_const":
            # A new list each time: the default must not grow with the words.
            return setattr(space, dest, list(getattr(space, dest, None) or []) + [action.const])
        if action.nargs is None:
            value = self._convert(action, words[0])
        elif action.nargs == "?":
            if words:
                value = self._convert(action, words[0])
            else:
                # An option without its word has the const, a positional that is left out its default.
                value = action.const if name else action.default
        elif action.nargs == "*" and not words and not name and action.default is not None:
            value = action.default
        else:
            value = [self._convert(action, w) for w in words]
        if kind == "append":
            value = list(getattr(space, dest, None) or []) + [value]
        elif kind == "extend":
            value = list(getattr(space, dest, None) or []) + (value if isinstance(value, list) else [value])
        setattr(space, dest, value)

    def _finish(self, positionals, space, seen):
        for action in list(positionals):
            if action.nargs in ("*", "?", "..."):
                positionals.remove(action)
                self._leave_out(action, space)
        missing = [a.title() for a in self._actions if a.required and a not in seen
                   and (a.option_strings or a in positionals)]
        if self._parsers:
            if not getattr(self, "_chosen", False):
                if self._parsers.required:
                    missing.append(self._parsers.dest or "{" + ",".join(self._parsers.choices) + "}")
                elif self._parsers.dest and not hasattr(space, self._parsers.dest):
                    setattr(space, self._parsers.dest, None)
            self._chosen = False
        if missing:
            raise ArgumentError("the following arguments are required: " + ", ".join(missing))
        for group in self._exclusive:
            given = [a for a in group.actions if a in seen]
            # The same option twice is no conflict.
            if len(given) > 1 and given[0] is not given[1]:
                raise ArgumentError(f"argument {given[1].title()}: not allowed with argument {given[0].title()}")
            if group.required and not given:
                raise ArgumentError("one of the arguments " + " ".join(a.title() for a in group.actions)
                                    + " is required")
        for action in self._actions:  # a default that is a text is converted as a word would be
            if isinstance(action.default, str) and action.type is not None and action not in seen \
                    and getattr(space, action.dest, None) == action.default and action.default is not SUPPRESS:
                setattr(space, action.dest, self._convert(action, action.default))

    # --- texts
    def format_usage(self):
        if self.usage:
            return "usage: " + self.usage.replace("%(prog)s", self.prog) + "\n"
        parts, last = {True: [], False: []}, None
        for action in [a for a in self._actions if a.option_strings] + [a for a in self._actions
                                                                        if not a.option_strings]:
            if action.help is SUPPRESS:
                continue
            group = next((g for g in self._exclusive if action in g.actions), None)
            named = bool(action.option_strings)
            text = action.shown()
            if action.option_strings:
                names = " | ".join(action.option_strings) if action.action == "boolean" else action.option_strings[0]
                text = names + (" " + text if text else "")
                text = text if action.required or group and len(group.actions) > 1 else f"[{text}]"
            if group and group is last and parts[named]:  # one of a group: [--fast | --slow]
                parts[named][-1] += " | " + text
            else:
                parts[named].append(text)
            last = group
            if group and len(group.actions) > 1 and action is group.actions[-1]:
                parts[named][-1] = ("(%s)" if group.required else "[%s]") % parts[named][-1]
        if self._parsers:
            parts[False].append("{" + ",".join(self._parsers.helps) + "} ...")
        start = f"usage: {self.prog}"
        whole = " ".join([start] + parts[True] + parts[False])
        # 78 columns, as Python's help has in a terminal of 80.
        if len(whole) <= 78:
            return whole + "\n"
        lines, line = [], start  # the positional arguments begin a line of their own
        for named in (True, False):
            for i, part in enumerate(parts[named]):
                if len(line) + 1 + len(part) > 78 or (i == 0 and not named and parts[True]):
                    lines.append(line)
                    line = " " * len(start)
                line += " " + part
        return "\n".join(lines + [line]) + "\n"

    def format_help(self):
        out = self.format_usage()
        formatter = self.formatter_class

        def paragraph(text):
            text = text.replace("%(prog)s", self.prog)
            return text if formatter.keep_lines else _wrapped(" ".join(text.split()), 78)

        if self.description:
            out += "\n" + paragraph(self.description) + "\n"
        sections = {}
        for action in self._actions:
            title = action.group or ("options" if action.option_strings else "positional arguments")
            if action.help is not SUPPRESS:
                sections.setdefault(title, []).append(action)
        if self._parsers:
            sections.setdefault("positional arguments", [])
        order = [t for t in ("positional arguments", "options") if t in sections]
        lefts = [self._left_of(a) for actions in sections.values() for a in actions]
        lefts += ["    " + name for name in self._parsers.helps] if self._parsers else []
        # 24 columns at the most for the left side; longer options have a line of their own.
        at = min([24, max(len(left) for left in lefts) + 2]) if lefts else 24
        for title in order + [t for t in sections if t not in order]:
            out += f"\n{title}:\n"
            if self._descriptions.get(title):
                out += "  " + self._descriptions[title] + "\n\n"
            for action in sections[title]:
                out += _two_columns(self._left_of(action), self._help_of(action), at)
            if self._parsers and title == "positional arguments":
                out += "  {" + ",".join(self._parsers.helps) + "}\n"
                for name, text in self._parsers.helps.items():
                    out += _two_columns("    " + name, text or "", at)
        if self.epilog:
            out += "\n" + paragraph(self.epilog) + "\n"
        return out

    def _left_of(self, action):
        shown = action.shown()
        names = [o + (" " + shown if shown else "") for o in action.option_strings]
        return "  " + (", ".join(names) or action.of_value())

    def _help_of(self, action):
        text = action.help or ""
        # Without a help text the default has no place, and a required positional has none.
        if self.formatter_class.show_defaults and action.default is not SUPPRESS and "%(default)" not in text \
                and text and (action.option_strings or action.nargs in ("?", "*")):
            text += " (default: %(default)s)"
        values = {"default": action.default, "prog": self.prog, "dest": action.dest, "metavar": action.metavar,
                  "const": action.const, "choices": ", ".join(str(c) for c in action.choices or []),
                  "type": getattr(action.type, "__name__", None), "nargs": action.nargs}
        # A text may have a single % where there is nothing to fill in.
        return text % values if "%" in text else text

    def print_help(self, file=None):
        print(self.format_help(), end="", file=file)

    def print_usage(self, file=None):
        print(self.format_usage(), end="", file=file)

    def exit(self, status=0, message=None):
        if message:
            _sys.stderr.write(message)
        _sys.exit(status)

    def error(self, message):
        self.print_usage(_sys.stderr)
        # 2: the status of wrong usage, as in Python.
        self.exit(2, f"{self.prog}: error: {message}\n")


def _wrapped(text, width, pad=""):
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = line + " " + word if line else word
    return ("\n" + pad).join(lines + [line])


def _two_columns(left, text, at):
    if not text:
        return left + "\n"
    pad = " " * at
    text = _wrapped(" ".join(text.split()), 78 - at, pad)
    return left + "\n" + pad + text + "\n" if len(left) > at - 2 else left.ljust(at) + text + "\n"


class FileType:
    def __init__(self, mode="r", *args, **kwargs):
        self.mode = mode

    def __call__(self, path):
        return open(path, self.mode)
