"""copy: shallow and deep copies."""


class Error(Exception):
    pass


_plain = (int, float, bool, str, type(None), type, range, slice)


def copy(x):
    if isinstance(x, _plain) or callable(x) and not hasattr(x, "__dict__"):
        return x
    if hasattr(x, "__copy__"):
        return x.__copy__()
    if type(x) is list:
        return list(x)
    if type(x) is dict:
        return dict(x)
    if type(x) is set:
        return set(x)
    if isinstance(x, tuple):
        # A tuple cannot change, so a copy of it is itself.
        return x
    if isinstance(x, (list, dict, set)):
        # Past __init__, which may ask for arguments.
        made = type(x).__new__(type(x))
        if isinstance(x, list):
            made.extend(x)
        else:
            made.update(x)
        made.__dict__.update(x.__dict__)
        return made
    if hasattr(x, "clone"):
        # Tensors: their elements are copied.
        return x.clone()
    if not hasattr(type(x), "__new__") or not hasattr(x, "__dict__") or callable(x) and not hasattr(type(x), "__call__"):
        return x
    made = object.__new__(type(x))
    made.__dict__.update(x.__dict__)
    return made


def deepcopy(x, memo=None):
    memo = {} if memo is None else memo
    if isinstance(x, _plain):
        return x
    key = id(x)
    if key in memo:
        return memo[key][0]
    if hasattr(x, "__deepcopy__"):
        made = x.__deepcopy__(memo)
    elif isinstance(x, tuple):
        items = [deepcopy(v, memo) for v in x]
        made = type(x)(*items) if hasattr(x, "_fields") else tuple(items)
    elif isinstance(x, (list, dict, set)):
        made = type(x)() if type(x) in (list, dict, set) else type(x).__new__(type(x))
        # Before the elements, which may contain the whole.
        memo[key] = (made, x)
        if isinstance(x, list):
            made.extend(deepcopy(v, memo) for v in x)
        elif isinstance(x, dict):
            for k, v in x.items():
                made[deepcopy(k, memo)] = deepcopy(v, memo)
        else:
            made.update(deepcopy(v, memo) for v in x)
        if type(x) not in (list, dict, set):
            for k, v in x.__dict__.items():
                object.__setattr__(made, k, deepcopy(v, memo))
    elif hasattr(x, "is_leaf"):
        from torch import _tape  # here: most scripts copy no tensors
        made = _tape.copied(x)
    elif hasattr(x, "clone"):
        made = x.clone()
    elif not hasattr(x, "__dict__") or hasattr(x, "__code__") or hasattr(x, "__qualname__"):
        made = x  # functions, kernels, modules
    else:
        made = object.__new__(type(x))
        memo[key] = (made, x)
        for k, v in x.__dict__.items():
            object.__setattr__(made, k, deepcopy(v, memo))
    memo[key] = (made, x)  # x too: its id must not be given to another while the copy runs
    return made
