

# Kiln's side: takes step.py's batch, runs a few steps, saves what became of the parameters, and measures a round
# whenever step.py asks for one.
import os
import sys
import time

name, seed, largest, optimizer, device, steps, rounds, ask = sys.argv[1:9]
model = MODELS[name](int(seed), int(largest))
state = initial(model, device)
x, target = model.batch(device)
given = torch.load(ask + "/given.npz", map_location=device)
state["p"] = {k: given[k] for k in state["p"]}
x, target = given["x"].to(x.dtype), given["target"]
first = state
losses = []
for _ in range(int(steps)):
    state, value = step(model, state, x, target, optimizer)
    losses.append(value.item())
torch.save({k: t.clone() for k, t in state["p"].items()}, ask + "/kiln.npz")
print("losses", *losses, flush=True)


def run():
    after, value = step(model, first, x, target, optimizer)
    return after, value


on_gpu = device != "cpu"
if on_gpu:
    flushed = torch.empty(1 << 28, dtype=torch.int8, device=device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = run()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
else:
    for _ in range(2):
        run()[1].item()
print("ready", flush=True)
for r in range(int(rounds)):
    while not os.path.exists("%s/%d" % (ask, r)):
        time.sleep(0.0005)
    if on_gpu:
        flushed.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        device_us = start.elapsed_time(end) * 1e3
    begin = time.perf_counter()
    after, value = run()
    value.item()
    wall_us = (time.perf_counter() - begin) * 1e6
    del after, value
    print(device_us if on_gpu else wall_us, wall_us, flush=True)
