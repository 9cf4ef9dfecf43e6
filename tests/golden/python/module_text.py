"""The text that a module begins with."""
import argparse
import textwrap


def named():
    "of a function"


class Plain:
    pass


print(repr(__doc__), repr(named.__doc__), repr(Plain.__doc__))
print(argparse.ArgumentParser(prog="x", description=__doc__).format_help())
print(textwrap.__doc__ is not None, repr((lambda: "no docstring").__doc__))
