import kiln, kiln.language as tl
F=tl.constexpr(50.)
W=7
@kiln.jit
def dev2(v): return v*F
@kiln.jit
def mk(x,o,B:tl.constexpr):
    i=tl.arange(0,B)
    tl.store(o+i,dev2(tl.load(x+i)))
