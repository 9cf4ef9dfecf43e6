"""Graphs given by their edges, and tables of users and items."""
import torch
import torch.nn.functional as F

from draw import integers, line, rand, uniform


def graph(d, most=1 << 18):
    """Nodes and edges."""
    n = 100 + d.upto(20000)
    return n, min(n * d.pick([3, 8, 17]) + d.below(100), most)


@line
def segment_softmax(d):
    """Attention of GAT: a softmax over the edges that end in a node."""
    n, e = graph(d)
    h = d.pick([1, 4, 8])

    def f(a_src, a_dst, src, dst):
        alpha = F.leaky_relu(a_src[src] + a_dst[dst], 0.2)
        index = dst.unsqueeze(-1).expand_as(alpha)
        most = torch.full((n, h), -torch.inf, device=alpha.device).scatter_reduce(0, index, alpha, "amax")
        alpha = (alpha - most[dst]).exp()
        total = torch.zeros((n, h), device=alpha.device).scatter_add(0, index, alpha)
        return alpha / (total[dst] + 1e-16)

    return f, [rand((n, h)), rand((n, h)), integers(n, (e,)), integers(n, (e,))]


@line
def degree_norm(d):
    n, e = graph(d)

    def f(src, dst, w):
        # GCN's weights of edges: by the square roots of both degrees.
        deg = torch.zeros(n, device=w.device).scatter_add_(0, dst, w)
        inv = deg.pow(-0.5)
        inv = inv.masked_fill(inv == float("inf"), 0)
        return inv[src] * w * inv[dst]

    return f, [integers(n, (e,)), integers(n, (e,)), uniform((e,)) + 0.1]


@line
def neighbour_mean(d):
    """GraphSAGE before its products: the mean of what edges bring, beside the node itself."""
    n, e = graph(d, 1 << 16)
    c = d.pick([16, 64, 100, 128])

    def f(x, src, dst):
        total = torch.zeros_like(x).index_add_(0, dst, x[src])
        count = torch.zeros(n, device=x.device).index_add_(0, dst, torch.ones(e, device=x.device))
        return torch.cat([x, total / count.clamp(min=1).unsqueeze(-1)], dim=-1)

    return f, [rand((n, c)), integers(n, (e,)), integers(n, (e,))]


@line
def radial_messages(d):
    """SchNet: distances of edges spread over Gaussians, with a smooth cutoff."""
    n, e = graph(d)
    k = d.pick([16, 50])

    def f(pos, src, dst):
        dist = (pos[src] - pos[dst]).norm(dim=-1)
        offset = torch.linspace(0.0, 5.0, k, device=pos.device)
        basis = torch.exp(-0.5 / (5.0 / (k - 1)) ** 2 * (dist[:, None] - offset) ** 2)
        cutoff = 0.5 * (torch.cos(dist * torch.pi / 5.0) + 1.0) * (dist < 5.0).float()
        return basis * cutoff[:, None]

    return f, [rand((n, 3)) * 2, integers(n, (e,)), integers(n, (e,))]


@line
def graph_norm(d):
    """Nodes normed over their graph, of a batch of graphs."""
    n, c, g = 100 + d.upto(20000), d.pick([32, 64, 100]), d.pick([8, 33, 128])

    def f(x, batch, weight, bias, scale):
        one = torch.ones(n, device=x.device)
        count = torch.zeros(g, device=x.device).scatter_add_(0, batch, one).clamp(min=1).unsqueeze(-1)
        mean = torch.zeros((g, c), device=x.device).index_add(0, batch, x) / count
        out = x - mean[batch] * scale
        var = torch.zeros((g, c), device=x.device).index_add(0, batch, out.pow(2)) / count
        return weight * out / (var + 1e-5).sqrt()[batch] + bias

    return f, [rand((n, c)), torch.sort(integers(g, (n,))).values, rand((c,)), rand((c,)), rand((c,))]


@line
def pairwise_ranking(d):
    """BPR of users and items, with its penalty."""
    users, items, c, m = 5000 + d.upto(50000), 1000 + d.upto(50000), d.pick([32, 64, 100]), 64 + d.upto(16000)

    def f(user, item, u, i, j):
        eu, ei, ej = user[u], item[i], item[j]
        x = (eu * ei).sum(-1) - (eu * ej).sum(-1)
        penalty = eu.pow(2).sum() + ei.pow(2).sum() + ej.pow(2).sum()
        return -F.logsigmoid(x).mean() + 1e-4 * 0.5 * penalty / m

    return f, [rand((users, c)), rand((items, c)), integers(users, (m,)), integers(items, (m,)), integers(items, (m,))]
