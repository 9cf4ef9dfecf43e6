"""Images and the windows and patches that vision transformers make of them."""
import torch
import torch.nn.functional as F

from draw import integers, line, rand, uniform


@line
def window_reverse(d):
    """Swin after attention: windows back to an image, rolled back, added to what came in, normed."""
    b, c, w, s = 1 + d.below(16), d.pick([96, 128, 192]), 7, d.pick([14, 28, 56])
    t = d.dtype()

    def f(windows, shortcut, weight, bias):
        x = windows.view(b, s // w, s // w, w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(b, s, s, c)
        x = torch.roll(x, shifts=(3, 3), dims=(1, 2)).view(b, s * s, c)
        x = shortcut + x
        return x, F.layer_norm(x, (c,), weight, bias)

    return f, [rand((b * (s // w) ** 2, w * w, c), t), rand((b, s * s, c), t), rand((c,), t), rand((c,), t)]


@line
def shifted_window_softmax(d):
    """Scores of shifted windows: no look across the seam of the roll, whose mask is made on the way."""
    b, h, w, s = 1 + d.below(8), d.pick([3, 6, 12]), 7, d.pick([14, 28])
    t = d.dtype()

    def f(scores, bias):
        i = torch.arange(s, device=scores.device)
        part = (i >= s - w).long() + (i >= s - 3).long()
        image = part[:, None] * 3 + part[None, :]
        ids = image.view(s // w, w, s // w, w).permute(0, 2, 1, 3).reshape(-1, w * w)
        mask = ids.unsqueeze(1) - ids.unsqueeze(2)
        mask = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(mask != 0, -100.0)
        n = (s // w) ** 2
        x = (scores + bias.unsqueeze(0)).view(b, n, h, w * w, w * w) + mask.unsqueeze(1).unsqueeze(0)
        return F.softmax(x.view(-1, h, w * w, w * w), dim=-1)

    return f, [rand((b * (s // w) ** 2, h, w * w, w * w), t), rand((h, w * w, w * w), t)]


@line
def masked_autoencoder(d):
    """MAE: a random quarter of the patches is kept; the mask, and the way back."""
    b, n, c = 1 + d.below(32), d.pick([49, 196, 256]), d.pick([192, 768, 1000])
    keep = n // 4

    def f(x, noise):
        shuffle = torch.argsort(noise, dim=1)
        restore = torch.argsort(shuffle, dim=1)
        kept = torch.gather(x, dim=1, index=shuffle[:, :keep].unsqueeze(-1).repeat(1, 1, c))
        mask = torch.ones([b, n], device=x.device)
        mask[:, :keep] = 0
        return kept, torch.gather(mask, dim=1, index=restore), restore

    return f, [rand((b, n, c), d.dtype()), uniform((b, n))]


@line
def cutmix(d):
    """A box of each image comes from another image; targets by the areas."""
    b, s, k = 2 + d.below(32), d.length([32, 113, 224]), d.pick([10, 1000])
    t = d.dtype()

    def f(x, y, perm, cx, cy, cut):
        x1, x2 = (cx - cut // 2).clamp(0, s), (cx + cut // 2).clamp(0, s)
        y1, y2 = (cy - cut // 2).clamp(0, s), (cy + cut // 2).clamp(0, s)
        i = torch.arange(s, device=x.device)
        inside = ((i >= y1[:, None]) & (i < y2[:, None]))[:, None, :, None] \
            & ((i >= x1[:, None]) & (i < x2[:, None]))[:, None, None, :]
        lam = 1.0 - ((x2 - x1) * (y2 - y1)).float() / (s * s)
        target = F.one_hot(y, k).float()
        return torch.where(inside, x[perm], x), lam[:, None] * target + (1 - lam[:, None]) * target[perm]

    return f, [rand((b, 3, s, s), t), integers(k, (b,)), torch.argsort(uniform((b,))), integers(s, (b,)),
               integers(s, (b,)), integers(s, (b,))]


@line
def spatial_attention(d):
    """CBAM: the mean and the maximum over channels, a convolution of 7 x 7, and a gate."""
    b, c, s = 1 + d.below(16), d.pick([32, 64, 256]), d.length([14, 29, 56])
    t = d.dtype()

    def f(x, w, scale, shift):
        pooled = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], dim=1)
        gate = F.conv2d(pooled, w, padding=3) * scale + shift
        return x * torch.sigmoid(gate)

    return f, [rand((b, c, s, s), t), rand((1, 2, 7, 7), t) * 0.1, rand((1,), t), rand((1,), t)]


@line
def decomposed_positions(d):
    """SAM: positions of rows and of columns are products with the queries, added to the scores."""
    b, s, e = 1 + d.below(12), d.pick([7, 14, 20]), 64
    t = d.dtype()

    def f(scores, q, table_h, table_w):
        i = torch.arange(s, device=q.device)
        place = i[:, None] - i[None, :] + (s - 1)
        rh, rw = table_h[place], table_w[place]
        r = q.reshape(b, s, s, e)
        rel_h = torch.einsum("bhwc,hkc->bhwk", r, rh)
        rel_w = torch.einsum("bhwc,wkc->bhwk", r, rw)
        x = scores.view(b, s, s, s, s) + rel_h[:, :, :, :, None] + rel_w[:, :, :, None, :]
        return x.view(b, s * s, s * s).softmax(dim=-1)

    return f, [rand((b, s * s, s * s), t), rand((b, s * s, e), t) * 0.1, rand((2 * s - 1, e), t),
               rand((2 * s - 1, e), t)]


@line
def blur_pool(d):
    """Antialiased by a binomial filter, mirrored at the edges."""
    b, c, s = 1 + d.below(8), d.pick([32, 64, 96]), d.length([28, 57, 112])
    t = d.dtype()

    def f(x):
        row = torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype, device=x.device)
        kernel = (row[:, None] * row[None, :] / 16.0)[None, None].repeat(c, 1, 1, 1)
        return F.conv2d(F.pad(F.relu(x), (1, 1, 1, 1), mode="reflect"), kernel, stride=2, groups=c)

    return f, [rand((b, c, s, s), t)]


@line
def shift_hue(d):
    """To hue, saturation and value, a turn, and back, as torchvision's color jitter."""
    b, s = 1 + d.below(16), d.length([32, 113, 224])

    def f(img, factor):
        r, g, b_ = img.unbind(dim=-3)
        most, least = torch.max(img, dim=-3).values, torch.min(img, dim=-3).values
        same = most == least
        span = most - least
        ones = torch.ones_like(most)
        sat = span / torch.where(same, ones, most)
        div = torch.where(same, ones, span)
        rc, gc, bc = (most - r) / div, (most - g) / div, (most - b_) / div
        hr = (most == r) * (bc - gc)
        hg = ((most == g) & (most != r)) * (2.0 + rc - bc)
        hb = ((most != g) & (most != r)) * (4.0 + gc - rc)
        hue = torch.fmod((hr + hg + hb) / 6.0 + 1.0, 1.0)
        hue = (hue + factor[:, None, None]) % 1.0
        i = torch.floor(hue * 6.0)
        frac = hue * 6.0 - i
        i = i.to(torch.int32) % 6
        p = torch.clamp(most * (1.0 - sat), 0.0, 1.0)
        q = torch.clamp(most * (1.0 - sat * frac), 0.0, 1.0)
        t = torch.clamp(most * (1.0 - sat * (1.0 - frac)), 0.0, 1.0)
        mask = (i.unsqueeze(dim=-3) == torch.arange(6, device=i.device).view(-1, 1, 1)).to(img.dtype)
        a1 = torch.stack((most, q, p, p, t, most), dim=-3)
        a2 = torch.stack((t, most, most, q, p, p), dim=-3)
        a3 = torch.stack((p, p, t, most, most, q), dim=-3)
        return torch.einsum("...ijk,...xijk->...xjk", mask, torch.stack((a1, a2, a3), dim=-4))

    return f, [uniform((b, 3, s, s)), uniform((b,)) - 0.5]


@line
def equalize(d):
    """Of each channel of bytes: a histogram, its running sum, and a look-up."""
    n, s = 3 * (1 + d.below(8)), d.length([64, 113, 224])

    def f(img):
        flat = img.reshape(n, -1).long()
        hist = torch.zeros(n, 256, dtype=torch.long, device=img.device).scatter_add_(1, flat, torch.ones_like(flat))
        total = hist.cumsum(dim=-1)
        low = torch.where(hist > 0, total, s * s).amin(dim=-1, keepdim=True)
        lut = ((total - low) * 255.0 / (s * s - low).clamp(min=1)).round().clamp(0, 255).to(torch.uint8)
        return lut.gather(1, flat).view(img.shape)

    return f, [(uniform((n, s, s)) ** 2 * 256).to(torch.uint8)]


@line
def patch_merging(d):
    """Swin between its stages: four neighbours become one row, which is normed and projected."""
    b, c, s = 1 + d.below(8), d.pick([96, 128, 192]), d.pick([14, 28, 56])
    t = d.dtype()

    def f(x, weight, bias, w):
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        x = x.view(b, -1, 4 * c)
        return F.linear(F.layer_norm(x, (4 * c,), weight, bias), w)

    return f, [rand((b, s, s, c), t), rand((4 * c,), t), rand((4 * c,), t), rand((2 * c, 4 * c), t) * 0.05]
