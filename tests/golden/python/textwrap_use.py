import textwrap, random
W = ["a", "word", "hyphen-ated", "multi-word-thing", "x--y", "--foo-bar", "end.--Then", "a-1", "1-a", "averyveryverylongwordindeed", "tri-state,", "--", "-", "e.g.-x", "well-", "é-à-ü", "foo  ", "\t", "\n", "don't-you", "a.b-cd"]
for seed in range(300):
    r = random.Random(seed)
    text = r.choice([" ", "  ", " ", " "]).join(r.choice(W) for _ in range(r.randrange(12)))
    if r.random() < .2: text = "  " + text + " "
    kw = {}
    if r.random() < .3: kw["initial_indent"] = "* "
    if r.random() < .3: kw["subsequent_indent"] = "    "
    if r.random() < .2: kw["break_long_words"] = False
    if r.random() < .2: kw["break_on_hyphens"] = False
    if r.random() < .2: kw["max_lines"] = r.randrange(1, 3)
    if r.random() < .1: kw["drop_whitespace"] = False
    if r.random() < .1: kw["placeholder"] = "..."
    w = r.choice([6, 8, 10, 12, 20, 40])
    try: print(seed, textwrap.wrap(text, w, **kw), textwrap.shorten(text, w))
    except ValueError as e: print(seed, e)
