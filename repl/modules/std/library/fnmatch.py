"""fnmatch: names that a pattern fits."""
from glob import fnmatch

fnmatchcase = fnmatch


def filter(names, pattern):
    return [n for n in names if fnmatch(n, pattern)]
