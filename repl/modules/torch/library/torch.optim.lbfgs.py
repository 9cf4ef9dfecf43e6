"""torch.optim.lbfgs: a quasi-Newton method, which asks for the loss as often as it needs."""
import torch
from torch.optim import Optimizer, _checked


def _between(a, b, bounds=None):
    """The least place of the cubic through two points of (place, value, slope), within bounds."""
    (x, f, slope), (y, g, other) = (a, b) if a[0] <= b[0] else (b, a)
    low, high = (x, y) if bounds is None else bounds
    d = slope + other - 3 * (f - g) / (x - y)
    square = d * d - slope * other
    if not square >= 0:
        return (low + high) / 2
    root = square**0.5
    below = other - slope + 2 * root
    # Python's division by zero is an error, where a tensor's is infinite.
    at = y - (y - x) * ((other + root - d) / below) if below != 0 else high
    return min(max(at, low), high)


class _Point:
    """The loss at a step along the direction, with its gradient."""

    def __init__(self, at, loss, gradient, slope):
        self.at, self.loss, self.gradient, self.slope = at, loss, gradient, slope

    def three(self):
        return self.at, self.loss, self.slope


def _line_search(look, first, at, length, most, least_change, c1=1e-4, c2=0.9):
    """Nocedal and Wright's search for a step of the strong Wolfe conditions; (point, how often was looked)."""
    now, before, count, slope = look(at), first, 0, first.slope
    bracket, done = None, False
    while count < most:
        if now.loss > first.loss + c1 * now.at * slope or (count > 1 and now.loss >= before.loss):
            bracket = [before, now]
        elif abs(now.slope) <= -c2 * slope:
            bracket, done = [now], True
        elif now.slope >= 0:
            bracket = [before, now]
        if bracket is not None:
            break
        bounds = now.at + 0.01 * (now.at - before.at), now.at * 10
        at = _between(before.three(), now.three(), bounds)
        before, now = now, look(at)
        count += 1
    looks = count + 1
    if bracket is None:
        bracket = [first, now]
    stuck = False
    best, other = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
    while not done and count < most:
        low, high = sorted([bracket[0].at, bracket[1].at])
        if (high - low) * length < least_change:
            break
        at = _between(bracket[0].three(), bracket[1].three())
        margin = 0.1 * (high - low)
        # Near to an end twice, or beyond: a step inward.
        if min(high - at, at - low) < margin:
            inward = stuck or at >= high or at <= low
            if inward:
                at = high - margin if abs(at - high) < abs(at - low) else low + margin
            stuck = not inward
        else:
            stuck = False
        now = look(at)
        looks, count = looks + 1, count + 1
        if now.loss > first.loss + c1 * now.at * slope or now.loss >= bracket[best].loss:
            bracket[other] = now
            best, other = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            if abs(now.slope) <= -c2 * slope:
                done = True
            elif now.slope * (bracket[other].at - bracket[best].at) >= 0:
                bracket[other] = bracket[best]
            bracket[best] = now
    return bracket[best if len(bracket) > 1 else 0], looks


class LBFGS(Optimizer):
    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None):
        _checked("learning rate", lr)
        super().__init__(params, dict(lr=lr, max_iter=max_iter,
                                      max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
                                      tolerance_grad=tolerance_grad, tolerance_change=tolerance_change,
                                      history_size=history_size, line_search_fn=line_search_fn))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _flat_gradient(self):
        return torch.cat([torch.zeros_like(p).reshape(-1) if p.grad is None else p.grad.reshape(-1)
                          for p in self._params]).run()

    def _move(self, size, direction):
        at = 0
        for p in self._params:
            p.add_(direction[at:at + p.numel()].reshape(p.shape), alpha=size)
            at += p.numel()

    def _direction(self, gradient, state, history_size):
        """The gradient by the inverse Hessian that the last steps tell of, downhill."""
        y = gradient - state["prev_flat_grad"]
        s = state["d"] * state["t"]
        ys = float(y.dot(s))
        if ys > 1e-10:
            if len(state["old_dirs"]) == history_size:
                for name in ("old_dirs", "old_stps", "ro"):
                    state[name].pop(0)
            state["old_dirs"].append(y.run())
            state["old_stps"].append(s.run())
            state["ro"].append(1.0 / ys)
            state["H_diag"] = ys / float(y.dot(y))
        past = list(zip(state["old_dirs"], state["old_stps"], state["ro"]))
        d, shares = -gradient, []
        for y, s, ro in reversed(past):
            share = float(s.dot(d)) * ro
            shares.append(share)
            d = (d - share * y).run()
        d = d * state["H_diag"]
        for (y, s, ro), share in zip(past, reversed(shares)):
            d = (d + (share - float(y.dot(d)) * ro) * s).run()
        return d.run()

    def step(self, closure):
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("LBFGS.step() cannot be captured in a graph: it decides by the loss how often it steps")
        with torch.no_grad():
            return self._stepped_to(closure)

    def _stepped_to(self, closure):
        def evaluated():
            with torch.enable_grad():
                return closure()

        group = self.param_groups[0]
        lr = group["lr"].item() if isinstance(group["lr"], torch.Tensor) else group["lr"]
        state = self.state.setdefault(self._params[0], {})
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = evaluated()
        loss, evals = float(first), 1
        state["func_evals"] += 1
        gradient = self._flat_gradient()
        flat = bool(gradient.abs().max() <= group["tolerance_grad"])
        if flat:
            return first
        for count in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update(d=(-gradient).run(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                state["d"] = self._direction(gradient, state, group["history_size"])
            d, before = state["d"], loss
            state["prev_flat_grad"], state["prev_loss"] = gradient, loss
            t = min(1.0, 1.0 / float(gradient.abs().sum())) * lr if state["n_iter"] == 1 else lr
            slope, looks = float(gradient.dot(d)), 0
            state["t"] = t
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = [p.clone().run() for p in self._params]

                def look(at):
                    self._move(at, d)
                    loss, found = float(evaluated()), self._flat_gradient()
                    for p, x in zip(self._params, start):
                        p.copy_(x)
                    return _Point(at, loss, found, float(found.dot(d)))

                end, looks = _line_search(look, _Point(0, loss, gradient, slope), t, float(d.abs().max()),
                                          group["max_eval"] - evals, group["tolerance_change"])
                loss, gradient, t = end.loss, end.gradient, end.at
                state["t"] = t
                self._move(t, d)
                flat = bool(gradient.abs().max() <= group["tolerance_grad"])
            else:
                self._move(t, d)
                if count != group["max_iter"]:
                    loss, looks = float(evaluated()), 1
                    gradient = self._flat_gradient()
                    flat = bool(gradient.abs().max() <= group["tolerance_grad"])
            evals += looks
            state["func_evals"] += looks
            if (evals >= group["max_eval"] or flat or float((d * t).abs().max()) <= group["tolerance_change"]
                    or abs(loss - before) < group["tolerance_change"]):
                break
        return first
