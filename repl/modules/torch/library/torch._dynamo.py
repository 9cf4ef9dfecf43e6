"""torch._dynamo: nothing is captured, so that what programs set of it has no effect."""
from types import SimpleNamespace as _SimpleNamespace

from torch.compiler import allow_in_graph, disable, is_compiling, reset

config = _SimpleNamespace(cache_size_limit=8, recompile_limit=8, suppress_errors=False, verbose=False,
                          capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False,
                          assume_static_by_default=True, automatic_dynamic_shapes=True, optimize_ddp=True)


def graph_break(msg=""):
    pass


def mark_dynamic(t, index, *, min=None, max=None):
    pass


def mark_static(t, index=None):
    pass


def maybe_mark_dynamic(t, index):
    pass
