import io, json, math
# What dumps() writes, loads() reads.
for value in (2**64, -2**64 - 1, -2**126 - 2**126, 2**126 + (2**126 - 1), [math.inf, -math.inf], 1e300, -0.0, {"a": {"b": []}}):
    print(json.loads(json.dumps(value)), json.loads(json.dumps(value)) == value, type(json.loads(json.dumps(value))).__name__)
print(json.loads("[NaN, Infinity, -Infinity, 1e999]"), json.load(io.StringIO("18446744073709551616")))
print(json.loads(' \t\r\n{"a" : [1 , -0, 1E2, 0.5e-1, true,false, null] , "a\\u0062": {}, "d": 1, "d": 2}\n'))
print(json.loads(r'"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"') == "\"\\/\b\f\n\r\té😀", ascii(json.loads('"é\x7f😀"')))
for text in ("", "[1,]", "nan", "01", "+1", "1.", "-", "1e", "tru", '"a\nb"', "[1 2]", '{"a" 1}', "{1:2}", "1 2", '"abc', '"ab\\',
             '{"a":1,}', "[", "[1", "{", '{"a"', '{"a":', "-Infinit", r'"\x"', r'"\u12"', r'"\u12g4"', '"é\n', '["é",\n "é" 1]', "\ufeff1", "\x0c1"):
    try: print(repr(text), json.loads(text))
    except json.JSONDecodeError as e: print(repr(text), e)

# Encoders of one's own.
class Sets(json.JSONEncoder):
    def default(self, o): return sorted(o) if isinstance(o, set) else super().default(o)
print(json.dumps({"s": {2, 1}, "b": 1}, cls=Sets, sort_keys=True), Sets(indent=1).encode([{3}]), "".join(Sets().iterencode({4})))
try: json.dumps(object(), cls=Sets)
except TypeError as e: print(e)
print(json.dumps([{5}], default=list), json.JSONEncoder(separators=(",", ":")).encode({"a": [1, 2]}), json.dumps({}, cls=None))
