"""What torch.testing has beside its comparison of two tensors."""
import torch


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True,
                 check_dtype=True, check_layout=True, check_stride=False, msg=None):
    """An error unless all elements are close: of two tensors or numbers, or of those in lists, tuples and dicts."""
    if (rtol is None) != (atol is None):
        raise ValueError("Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                         f"{'rtol' if rtol is None else 'atol'}.")
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": check_dtype}
    if msg is None:
        return _compare(actual, expected, options, check_stride, "")
    try:
        _compare(actual, expected, options, check_stride, "")
    except AssertionError as e:
        told = msg(str(e)) if callable(msg) else msg
    else:
        return
    raise AssertionError(told)


def _compare(actual, expected, options, check_stride, item):
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        if not item:
            _compare_tensors(actual, expected, options)
        else:
            wrong = None
            try:
                _compare_tensors(actual, expected, options)
            except AssertionError as e:
                wrong = str(e)
            if wrong is not None:
                _fail(wrong, item)
        if check_stride and actual.stride() != expected.stride():
            _fail(f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}.", item)
    elif isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            _fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", item)
        for at, (one, other) in enumerate(zip(actual, expected)):
            _compare(one, other, options, check_stride, f"{item}[{at}]")
    elif isinstance(actual, dict) and isinstance(expected, dict):
        missing, more = [k for k in expected if k not in actual], [k for k in actual if k not in expected]
        if missing or more:
            _fail("The keys of the mappings do not match:\n"
                  f"Missing keys in the actual mapping: {sorted(missing, key=repr)}\n"
                  f"Additional keys in the actual mapping: {sorted(more, key=repr)}", item)
        for key in actual:
            _compare(actual[key], expected[key], options, check_stride, f"{item}[{key!r}]")
    elif actual is None or expected is None:
        if actual is not expected:
            _fail(f"None mismatch: {actual} is not {expected}", item)
    elif isinstance(actual, bool) and isinstance(expected, bool):
        if actual != expected:
            _fail(f"Booleans mismatch: {actual} is not {expected}", item)
    elif _is_number(actual) and _is_number(expected):
        _compare_numbers(actual, expected, options, item)
    else:
        raise TypeError("No comparison pair was able to handle inputs of type "
                        f"{type(actual)} and {type(expected)}." + (f" At item {item}." if item else ""))


def _compare_tensors(actual, expected, options):
    if actual.is_complex() or expected.is_complex():
        from torch._complex_new import assert_close as compare
    else:
        compare = torch.testing._assert_tensors_close
    compare(actual, expected, **options)


def _is_number(value):
    # A tensor of one element beside a number is one too.
    return isinstance(value, (int, float, complex)) or isinstance(value, torch.Tensor) and value.numel() == 1


def _compare_numbers(actual, expected, options, item):
    a, b = (v.item() if isinstance(v, torch.Tensor) else v for v in (actual, expected))
    if options["check_dtype"] and type(a) is not type(b) and not isinstance(actual, torch.Tensor) \
            and not isinstance(expected, torch.Tensor):
        _fail(f"The (d)types do not match: {type(a)} != {type(b)}.", item)
    exact = isinstance(a, int) and isinstance(b, int)
    rtol, atol = options["rtol"], options["atol"]
    if rtol is None:
        rtol = atol = 0.0 if exact else 1e-7
    if a == b or options["equal_nan"] and a != a and b != b:
        return
    apart = abs(a - b)
    if apart <= atol + rtol * abs(b) and apart != float("inf"):
        return
    share = apart / abs(b) if b != 0 else float("inf")
    if rtol == 0 and atol == 0:
        _fail(f"Scalars are not equal!\n\nExpected {b} but got {a}.\nAbsolute difference: {apart}\n"
              f"Relative difference: {share}", item)
    _fail(f"Scalars are not close!\n\nExpected {b} but got {a}.\n"
          f"Absolute difference: {apart} (up to {atol} allowed)\n"
          f"Relative difference: {share} (up to {rtol} allowed)", item)


def _fail(text, item):
    raise AssertionError(text + (f"\n\nThe failure occurred for item {item}" if item else ""))
