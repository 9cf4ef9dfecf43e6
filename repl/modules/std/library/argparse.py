"""argparse: the arguments of a script."""
import os as _os
import re as _re
import sys as _sys
import textwrap as _textwrap

SUPPRESS = "==SUPPRESS=="
OPTIONAL, ZERO_OR_MORE, ONE_OR_MORE, PARSER, REMAINDER = "?", "*", "+", "A...", "..."


class ArgumentError(Exception):
    def __init__(self, argument, message):
        self.argument_name, self.message = argument and _title(argument), message

    def __str__(self):
        return self.message if self.argument_name is None else f"argument {self.argument_name}: {self.message}"


class ArgumentTypeError(Exception):
    pass


class Namespace:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def __repr__(self):
        shown = [f"{k}={v!r}" for k, v in self.__dict__.items() if k.isidentifier()]
        others = {k: v for k, v in self.__dict__.items() if not k.isidentifier()}
        return "Namespace(" + ", ".join(shown + ([f"**{others!r}"] if others else [])) + ")"

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


class Action:
    """What an option or a positional does with its words."""

    def __init__(self, option_strings, dest, nargs=None, const=None, default=None, type=None, choices=None,
                 required=False, help=None, metavar=None):
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
        self.group = None  # its section of the help

    def __call__(self, parser, namespace, values, option_string=None):
        raise NotImplementedError(".__call__() not defined")

    def format_usage(self):
        return self.option_strings[0]

    def pattern(self):
        """Of the kinds of words that it takes: A is a value, O an option, - a '--'."""
        if isinstance(self.nargs, int):
            text = "-*" + "-*".join("A" * self.nargs) + "-*"
        else:
            text = _PATTERNS[self.nargs]
        # An option's words end at the first '--'.
        return text.replace("-*", "").replace("-", "") if self.option_strings else text

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
        if self.nargs == OPTIONAL:
            return f"[{name}]"
        if self.nargs == ZERO_OR_MORE:
            return f"[{name} ...]"
        if self.nargs == ONE_OR_MORE:
            return f"{name} [{name} ...]"
        if self.nargs == REMAINDER:
            return "..."
        if self.nargs == PARSER:
            return name + " ..."
        if isinstance(self.nargs, int):
            names = self.metavar if isinstance(self.metavar, tuple) else [name] * self.nargs
            return " ".join(names)
        return name


_PATTERNS = {None: "-*A-*", OPTIONAL: "-*A?-*", ZERO_OR_MORE: "-*[A-]*", ONE_OR_MORE: "-*A[A-]*",
             REMAINDER: "[-AO]*", PARSER: "-*A[-AO]*"}


def _title(action):
    """The name of an action in errors."""
    if action.option_strings:
        return "/".join(action.option_strings)
    if isinstance(action.metavar, str):
        return action.metavar
    if action.dest not in (None, SUPPRESS):
        return action.dest
    return "{" + ",".join(action.choices) + "}" if action.choices else None


class _StoreAction(Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)


class _StoreConstAction(Action):
    def __init__(self, option_strings, dest, const=None, default=None, required=False, help=None, metavar=None):
        super().__init__(option_strings, dest, nargs=0, const=const, default=default, required=required, help=help)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, self.const)


class _StoreTrueAction(_StoreConstAction):
    def __init__(self, option_strings, dest, default=False, required=False, help=None):
        super().__init__(option_strings, dest, True, default, required, help)


class _StoreFalseAction(_StoreConstAction):
    def __init__(self, option_strings, dest, default=True, required=False, help=None):
        super().__init__(option_strings, dest, False, default, required, help)


class _AppendAction(Action):
    def __call__(self, parser, namespace, values, option_string=None):
        # A new list each time: the default must not grow with the words.
        setattr(namespace, self.dest, list(getattr(namespace, self.dest, None) or []) + [values])


class _AppendConstAction(_StoreConstAction):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, list(getattr(namespace, self.dest, None) or []) + [self.const])


class _ExtendAction(Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, list(getattr(namespace, self.dest, None) or []) + list(values))


class _CountAction(Action):
    def __init__(self, option_strings, dest, default=None, required=False, help=None):
        super().__init__(option_strings, dest, nargs=0, default=default, required=required, help=help)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, (getattr(namespace, self.dest, None) or 0) + 1)


class _HelpAction(Action):
    def __init__(self, option_strings, dest=SUPPRESS, default=SUPPRESS, help=None):
        super().__init__(option_strings, dest, nargs=0, default=default, help=help)

    def __call__(self, parser, namespace, values, option_string=None):
        parser.print_help()
        parser.exit()


class _VersionAction(Action):
    def __init__(self, option_strings, version=None, dest=SUPPRESS, default=SUPPRESS,
                 help="show program's version number and exit"):
        super().__init__(option_strings, dest, nargs=0, default=default, help=help)
        self.version = version

    def __call__(self, parser, namespace, values, option_string=None):
        print((self.version or "").replace("%(prog)s", parser.prog))
        parser.exit()


class BooleanOptionalAction(Action):
    def __init__(self, option_strings, dest, default=None, type=None, choices=None, required=False, help=None,
                 metavar=None):
        names = []
        for name in option_strings:
            names.append(name)
            if name.startswith("--"):
                names.append("--no-" + name[2:])
        if help is not None and default is not None and default is not SUPPRESS:
            help += " (default: %(default)s)"
        super().__init__(names, dest, nargs=0, default=default, type=type, choices=choices, required=required,
                         help=help, metavar=metavar)

    def __call__(self, parser, namespace, values, option_string=None):
        if option_string in self.option_strings:
            setattr(namespace, self.dest, not option_string.startswith("--no-"))

    def format_usage(self):
        return " | ".join(self.option_strings)


class _SubParsersAction(Action):
    def __init__(self, parser, prog, dest=SUPPRESS, required=False, help=None, metavar=None):
        super().__init__([], dest, nargs=PARSER, choices={}, required=required, help=help, metavar=metavar)
        self._parser, self._prog = parser, prog
        self.helps = {}  # by the name with its aliases, of those that have one

    def add_parser(self, name, *, aliases=(), **kwargs):
        if "help" in kwargs:
            self.helps[name + (" (" + ", ".join(aliases) + ")" if aliases else "")] = kwargs.pop("help")
        kwargs.setdefault("prog", f"{self._prog} {name}")
        # Of the parser's own class, so that one that a script derives has its error() here too.
        made = type(self._parser)(**kwargs)
        for n in (name,) + tuple(aliases):
            self.choices[n] = made
        return made

    def __call__(self, parser, namespace, values, option_string=None):
        if self.dest is not SUPPRESS:
            setattr(namespace, self.dest, values[0])
        # What its parser says wins, defaults too.
        found, unknown = self.choices[values[0]].parse_known_args(values[1:], None)
        for name, value in vars(found).items():
            setattr(namespace, name, value)
        return unknown


_ACTIONS = {None: _StoreAction, "store": _StoreAction, "store_const": _StoreConstAction,
            "store_true": _StoreTrueAction, "store_false": _StoreFalseAction, "append": _AppendAction,
            "append_const": _AppendConstAction, "extend": _ExtendAction, "count": _CountAction, "help": _HelpAction,
            "version": _VersionAction}


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


class _Reading:
    """One pass over the words of a command line."""

    def __init__(self, parser, words, kinds, space):
        self.parser, self.words, self.kinds, self.space = parser, words, kinds, space
        self.positionals = [a for a in parser._actions if not a.option_strings]
        # `given` are the actions seen with something else than their default: no two of them may exclude one another.
        self.seen, self.given, self.unknown = [], [], []

    def take(self, action, words, option=None):
        self.seen.append(action)
        value = self.parser._values_of(action, words)
        if value is not action.default:
            self.given.append(action)
            for group in self.parser._exclusive:
                other = next((a for a in group.actions if a is not action and a in self.given), None)
                if action in group.actions and other:
                    raise ArgumentError(action, "not allowed with argument " + _title(other))
        if value is SUPPRESS:
            return
        left = action(self.parser, self.space, value, option)
        if isinstance(action, _SubParsersAction):
            self.unknown += left

    def positionals_at(self, at):
        """Gives the words from `at` on to as many of the next positionals as they are enough for."""
        for count in range(len(self.positionals), 0, -1):
            pattern = "".join("(" + a.pattern() + ")" for a in self.positionals[:count])
            match = _re.match(pattern, self.kinds[at:])
            if match:
                taken, self.positionals = self.positionals[:count], self.positionals[count:]
                for action, part in zip(taken, match.groups()):
                    words = self.words[at:at + len(part)]
                    at += len(part)
                    self.take(action, words)
                break
        return at

    def count(self, action, kinds):
        match = _re.match(action.pattern(), kinds)
        if match:
            return len(match.group())
        wanted = {None: "one argument", "?": "at most one argument", "+": "at least one argument"}.get(action.nargs)
        raise ArgumentError(action, "expected " + (wanted or f"{action.nargs} argument"
                                                   + ("s" if action.nargs > 1 else "")))

    def option_at(self, at, found):
        action, name, value = found
        if action is None:
            self.unknown.append(self.words[at])
            return at + 1
        # -vx: letters that take nothing, with others behind them.
        while value is not None and action.nargs == 0 and not name.startswith("--") and value:
            following = self.parser._named.get("-" + value[0])
            if following is None:
                raise ArgumentError(action, f"ignored explicit argument {value!r}")
            self.take(action, [], name)
            action, name, value = following, "-" + value[0], value[1:] or None
        if value is not None:
            if self.count(action, "A") != 1:
                raise ArgumentError(action, f"ignored explicit argument {value!r}")
            self.take(action, [value], name)
            return at + 1
        end = at + 1 + self.count(action, self.kinds[at + 1:])
        self.take(action, self.words[at + 1:end], name)
        return end


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
        self.allow_abbrev, self.exit_on_error = allow_abbrev, exit_on_error
        self._actions, self._named, self._exclusive, self._defaults, self._parsers = [], {}, [], {}, None
        if add_help:
            self.add_argument("-h", "--help", action="help", help="show this help message and exit")
        for parent in parents:
            for action in parent._actions:
                # Each parser has its own -h.
                if not isinstance(action, _HelpAction):
                    self._add_action(action)
            self._exclusive += parent._exclusive
            self._descriptions.update(parent._descriptions)
            self._defaults.update(parent._defaults)

    # --- what there is
    def add_argument(self, *names, **options):
        named = [n for n in names if n.startswith("-")]
        kind = options.pop("action", None)
        make = _ACTIONS.get(kind) if kind is None or isinstance(kind, str) else kind
        if not callable(make):
            raise ValueError(f'unknown action "{kind}"')
        dest = options.pop("dest", None)
        if not named:
            if len(names) > 1:
                raise ValueError("a positional argument has one name")
            dest = names[0] if names else dest
            if options.pop("required", False):
                raise TypeError("'required' is an invalid argument for positionals")
            # A positional is required where it takes at least one word.
            nargs = options.get("nargs")
            options["required"] = nargs not in (OPTIONAL, ZERO_OR_MORE) \
                or nargs == ZERO_OR_MORE and "default" not in options
        elif dest is None:
            # The first long option gives the name, as `--batch-size` gives batch_size.
            long = [n for n in named if n.startswith("--")] or named
            dest = long[0].lstrip("-").replace("-", "_")
        if "default" not in options:
            if dest in self._defaults:
                options["default"] = self._defaults[dest]
            elif self.argument_default is not None:
                options["default"] = self.argument_default
        if make in (_HelpAction, _VersionAction):
            options.pop("default", None)  # neither leaves a value in the result
            dest = SUPPRESS
        if options.get("type") is not None and not callable(options["type"]):
            raise ValueError(f"{options['type']!r} is not callable")
        return self._add_action(make(option_strings=named, dest=dest, **options))

    def _add_action(self, action):
        for name in action.option_strings:
            if name in self._named:
                raise ArgumentError(action, f"conflicting option string: {name}")
        self._named.update({name: action for name in action.option_strings})
        self._actions.append(action)
        return action

    def add_argument_group(self, title=None, description=None):
        self._descriptions[title] = description
        return _Group(self, title)

    def add_mutually_exclusive_group(self, required=False):
        group = _Group(self, None, True, required)
        self._exclusive.append(group)
        return group

    def add_subparsers(self, *, dest=SUPPRESS, required=False, title=None, help=None, metavar=None, description=None,
                       prog=None, **kwargs):
        if self._parsers:
            self.error("cannot have multiple subparser arguments")
        if prog is None:
            prog = " ".join([self.prog] + [a.shown() for a in self._actions if not a.option_strings])
        self._parsers = _SubParsersAction(self, prog, SUPPRESS if dest is None else dest, required, help, metavar)
        if title is not None or description is not None:
            self._parsers.group = title or "subcommands"
            self._descriptions[self._parsers.group] = description
        return self._add_action(self._parsers)

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
        if not self.exit_on_error:
            return space, self._parse(words, space)
        try:
            return space, self._parse(words, space)
        except ArgumentError as e:
            self.error(str(e))

    parse_intermixed_args = parse_args

    def _option(self, word):
        """(action, option, value behind '='), None for a word that is no option; no action where none is known."""
        if not word.startswith("-"):
            return None
        # The whole word first: an option may have '=' in its name.
        if word in self._named:
            return self._named[word], word, None
        if word == "-":
            return None  # stdin by custom
        name, mark, value = word.partition("=")
        if mark and name in self._named:
            return self._named[name], name, value
        near = self._near(word, name, value if mark else None)
        if len(near) > 1:
            raise ArgumentError(None, f"ambiguous option: {word} could match " + ", ".join(o for _, o, _ in near))
        if near:
            return near[0]
        # A number is a value unless the parser has an option such as -1. Python means digits with at most a point in
        # them: -inf and -1e5 are options for it.
        whole, point, part = word[1:].partition(".")
        if part.isdecimal() and (not whole or whole.isdecimal()) if point else whole.isdecimal():
            if not any(o[1:2].isdigit() for o in self._named):
                return None
        # What has a blank was quoted by somebody.
        return None if " " in word else (None, word, None)

    def _near(self, word, name, value):
        """What a word may mean that is no option as it stands: a beginning of one, a letter with its value."""
        near = []
        if word.startswith("--"):
            # Any beginning that fits one option alone is enough, as in Python.
            if self.allow_abbrev:
                near = [(a, o, value) for o, a in self._named.items() if o.startswith(name)]
        else:
            for option, action in self._named.items():  # -n5 and -vx
                if option == word[:2]:
                    near.append((action, option, word[2:]))
                elif option.startswith(word):
                    near.append((action, option, None))
        return near

    def _parse(self, words, space):
        # Before any word is read: an option's own default must not overwrite what it gave.
        for action in self._actions:
            if action.dest is not SUPPRESS and action.default is not SUPPRESS and not hasattr(space, action.dest):
                setattr(space, action.dest, action.default)
        for name, value in self._defaults.items():
            if not hasattr(space, name):
                setattr(space, name, value)
        # A letter for each word, which the patterns of nargs= are matched with.
        options, kinds = {}, ""
        for i, word in enumerate(words):
            if word == "--":
                kinds += "-" + "A" * (len(words) - i - 1)
                break
            found = self._option(word)
            if found is not None:
                options[i] = found
            kinds += "A" if found is None else "O"
        reading = _Reading(self, words, kinds, space)
        at, last = 0, max(options) if options else -1
        while at <= last:
            following = min(i for i in options if i >= at)
            if at != following:
                # Positionals take what stands before the option; what they leave is unknown.
                end = reading.positionals_at(at)
                if end > at:
                    at = end
                    continue
            if at not in options:
                reading.unknown += words[at:following]
                at = following
            at = reading.option_at(at, options[at])
        end = reading.positionals_at(at)
        reading.unknown += words[end:]
        self._finish(reading, space)
        return reading.unknown

    def _convert(self, action, word):
        # A default is often no text, and stands as it is.
        if action.type is None:
            return word
        try:
            return action.type(word)
        except ArgumentTypeError as e:
            raise ArgumentError(action, str(e))
        except (TypeError, ValueError):
            kind = getattr(action.type, "__name__", repr(action.type))
            raise ArgumentError(action, f"invalid {kind} value: {word!r}")

    def _checked(self, action, value):
        if action.choices is not None and value not in action.choices:
            listed = ", ".join(repr(c) for c in action.choices)
            raise ArgumentError(action, f"invalid choice: {value!r} (choose from {listed})")
        return value

    def _values_of(self, action, words):
        """What an action gets for its words."""
        if action.nargs not in (PARSER, REMAINDER) and "--" in words:
            words.remove("--")
        if not words and action.nargs == OPTIONAL:
            # An option without its word has the const, a positional that is left out its default.
            value = action.const if action.option_strings else action.default
            return self._checked(action, self._convert(action, value)) if isinstance(value, str) else value
        if not words and action.nargs == ZERO_OR_MORE and not action.option_strings:
            return words if action.default is None else action.default
        if len(words) == 1 and action.nargs in (None, OPTIONAL):
            return self._checked(action, self._convert(action, words[0]))
        values = [self._convert(action, w) for w in words]
        if action.nargs == PARSER:
            self._checked(action, values[0])
        elif action.nargs != REMAINDER:
            for value in values:
                self._checked(action, value)
        return values

    def _finish(self, reading, space):
        missing = []
        for action in self._actions:
            if action in reading.seen:
                continue
            if action.required:
                missing.append(_title(action))
            # A default that is a text is converted as a word would be.
            elif isinstance(action.default, str) and action.default is not SUPPRESS \
                    and getattr(space, action.dest, None) is action.default:
                setattr(space, action.dest, self._convert(action, action.default))
        if missing:
            self.error("the following arguments are required: " + ", ".join(missing))
        for group in self._exclusive:
            if group.required and not any(a in reading.given for a in group.actions):
                names = [_title(a) for a in group.actions if a.help is not SUPPRESS]
                self.error("one of the arguments " + " ".join(names) + " is required")

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
                text = action.format_usage() + (" " + text if text else "")
                text = text if action.required or group and len(group.actions) > 1 else f"[{text}]"
            if group and group is last and parts[named]:  # one of a group: [--fast | --slow]
                parts[named][-1] += " | " + text
            else:
                parts[named].append(text)
            last = group
            if group and len(group.actions) > 1 and action is group.actions[-1]:
                parts[named][-1] = ("(%s)" if group.required else "[%s]") % parts[named][-1]
        start = f"usage: {self.prog}"
        whole = " ".join([start] + parts[True] + parts[False])
        # 78 columns, as Python's help has in a terminal of 80.
        if len(whole) <= 78:
            return whole + "\n"
        # Lines break between brackets, and at the blanks outside of them.
        words = {n: _re.findall(r"\(.*?\)+(?=\s|$)|\[.*?\]+(?=\s|$)|\S+", " ".join(parts[n])) for n in parts}
        if len(start) > 58:
            # A long name has a line of its own.
            lines = _filled(words[True] + words[False], " " * 7)
            if len(lines) > 1:
                lines = _filled(words[True], " " * 7) + _filled(words[False], " " * 7)
            return "\n".join([start] + lines) + "\n"
        pad = " " * (len(start) + 1)
        lines = _filled(words[True] or words[False], pad)
        lines[0] = start + lines[0][len(start):]
        # Positional arguments begin a line of their own behind options.
        return "\n".join(lines + (_filled(words[False], pad) if words[True] else [])) + "\n"

    def format_help(self):
        out = self.format_usage()
        formatter = self.formatter_class

        def paragraph(text):
            text = text.replace("%(prog)s", self.prog)
            return text if formatter.keep_lines else _textwrap.fill(" ".join(text.split()), 78)

        if self.description:
            out += "\n" + paragraph(self.description) + "\n"
        sections = {}
        for action in self._actions:
            title = action.group or ("options" if action.option_strings else "positional arguments")
            if action.help is not SUPPRESS:
                sections.setdefault(title, []).append(action)
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
                if action is self._parsers:
                    for name, text in action.helps.items():
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


def _filled(words, pad):
    lines = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= 78:
            lines[-1] += " " + word
        else:
            lines.append(pad + word)
    return lines


def _two_columns(left, text, at):
    if not text:
        return left + "\n"
    pad = " " * at
    text = ("\n" + pad).join(_textwrap.wrap(" ".join(text.split()), 78 - at))
    return left + "\n" + pad + text + "\n" if len(left) > at - 2 else left.ljust(at) + text + "\n"


class FileType:
    def __init__(self, mode="r", *args, **kwargs):
        self.mode = mode

    def __call__(self, path):
        return open(path, self.mode)
