"""A line as a CUDA graph, and its time."""
import torch


def graphed(f, args):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            f(*args)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            graph.kept = f(*args)
    except Exception:
        # A capture that fails leaves torch's generator as within one, and no random numbers are drawn until another ends.
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            pass
        raise
    return graph


def timed(graph, flushed):
    """Microseconds of a replay behind a fill of the L2, which also hides the launch's own time."""
    flushed.zero_()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3


def shapes_of(args):
    def text(a):
        return "x".join(map(str, a.shape)) + {"torch.bfloat16": "", "torch.float32": ":f32"}.get(
            str(a.dtype), ":" + str(a.dtype)[6:])
    return " ".join(text(a) for a in args)
