import warnings
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    warnings.warn("x"); warnings.warn("x"); warnings.warn(DeprecationWarning("d"))
    print(len(w), [(str(m.message), m.category.__name__, type(m.message).__name__) for m in w])
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("ignore")
    warnings.warn("x")
    warnings.filterwarnings("always", category=RuntimeWarning)
    warnings.warn("x"); warnings.warn("r", RuntimeWarning)
    warnings.filterwarnings("error", message="bad")
    try: warnings.warn("Bad thing")
    except UserWarning as e: print("raised", e)
    print([str(m.message) for m in w])
# The latest filter counts, and one that is appended comes last.
with warnings.catch_warnings():
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", UserWarning); warnings.warn("quiet")
    try: warnings.warn("loud", RuntimeWarning)
    except RuntimeWarning as e: print(e)
    warnings.simplefilter("always", RuntimeWarning, append=True)
    try: warnings.warn("loud", RuntimeWarning)
    except RuntimeWarning as e: print(e)
with warnings.catch_warnings(record=True) as w:
    for _ in range(3): warnings.warn("once")
    with warnings.catch_warnings(record=True, action="always") as inner:
        warnings.warn("y"); warnings.warn("y")
    warnings.warn("z")
    print([str(m.message) for m in w], [str(m.message) for m in inner])
try: warnings.simplefilter("nope")
except AssertionError as e: print(e)
