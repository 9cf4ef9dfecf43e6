"""What a driver's first launch compiles for Hopper under Triton, without a GPU."""
import os
import resource
import runpy
import sys

DRIVERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "drivers")
HELPERS = ("blocks_of_scales", "harness", "permutation", "philox", "routing")


def driver_names():
    return [f[:-3] for f in sorted(os.listdir(DRIVERS)) if f.endswith(".py") and f[:-3] not in HELPERS]


class _Compiled(Exception):
    pass


class FirstLaunch:
    """`kernel`: Triton's compiled kernel; `arguments`: those of `kiln compile` for the same types and constants;
    `seconds`: CPU time of Triton's compilation, `ptxas`: that of its child processes."""


def _cpu(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def _kiln_arguments(kernel, name, parameters, values, options):
    source = kernel.src
    types, constants = [], []
    for i, parameter in enumerate(parameters):
        kind = source.signature[parameter.name]
        value = values.get(parameter.name)
        divisor = ""
        if any(a[0] == "tt.divisibility" for a in source.attrs.get((i,), [])):
            divisor = ":16"
        elif kind[0] in "iu" and isinstance(value, int):  # which Kiln's launches tell apart
            divisor = ":8" if value % 8 == 0 else ":4" if value % 4 == 0 else ""
        elif kind.startswith("tensordesc") and value.shape[-1] * value.base.element_size() % 16 == 0:
            divisor = ":16"
        types.append(kind + (divisor if kind != "constexpr" else ""))
        if kind == "constexpr":
            value = source.constants.get((i,))
            # None and 1 become constants of parameters that are no constexpr too.
            constants.append("%s=%s" % (parameter.name, repr(value) if isinstance(value, str) else value))
    return (["--kernel", name, "--signature", ",".join(types), "--num-warps", str(options.get("num_warps", 4)),
             "--num-stages", str(options.get("num_stages", 3))] + [w for c in constants for w in ("--constexpr", c)])


def first_launch(name, seed=1, warm=False):
    """Runs a driver up to its first launch, which is compiled instead. Changes this process: call it in one of its own.
    With `warm` Triton has compiled another kernel before."""
    import torch
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.runtime.jit import JITFunction

    class Driver:
        get_current_target = staticmethod(lambda: GPUTarget("cuda", 90, 32))
        get_current_device = staticmethod(lambda: 0)
        get_current_stream = staticmethod(lambda device=0: 0)
        get_active_torch_device = staticmethod(lambda: torch.device("cpu"))

    triton.runtime.driver.set_active(Driver())
    launch = JITFunction.run
    result = FirstLaunch()

    def run(self, *args, grid, warmup=False, **kwargs):
        if warm:
            import harness
            launch(harness.one, torch.empty(1, dtype=torch.int32), grid=(1, 1, 1), warmup=True)
        own, children = _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
        result.kernel = launch(self, *args, grid=(1, 1, 1), warmup=True, **kwargs)
        result.ptxas = _cpu(resource.RUSAGE_CHILDREN) - children
        result.seconds = _cpu(resource.RUSAGE_SELF) - own + result.ptxas
        values = dict(zip([p.name for p in self.params], args), **kwargs)
        result.arguments = _kiln_arguments(result.kernel, self.__name__, self.params, values, kwargs)
        raise _Compiled()

    JITFunction.run = run
    sys.path.insert(0, DRIVERS)
    sys.argv = [name, "one", str(seed), "0"]
    try:
        runpy.run_path(os.path.join(DRIVERS, name + ".py"), run_name="__main__")
    except _Compiled:
        pass
    return result
