"""Images, convolutions and pools, boxes, and geometry."""
import torch
import torch.nn.functional as F

from draw import BF16, F16, integers, line, rand, uniform


@line
def image_to_tensor(d):
    b, s = 1 + d.below(16), d.length([32, 113, 224, 299])
    img = (uniform((b, s, s, 3)) * 255).to(torch.uint8)

    def f(img, mean, std):
        # From bytes with the channels last to floats with the channels first: a transposition inside of a pointwise
        # line.
        return (((img.float() / 255 - mean) / std).permute(0, 3, 1, 2)).contiguous()

    return f, [img, uniform((3,)), uniform((3,)) + 0.5]


@line
def distance_matrix(d):
    m, n, k = 64 + d.upto(2000), 64 + d.upto(2000), d.pick([16, 64, 100, 256])

    def f(a, b):
        # |a - b|^2 as squares and a product of matrices, as retrieval code has it.
        return (a * a).sum(-1, keepdim=True) + (b * b).sum(-1)[None, :] - 2 * (a @ b.T)

    return f, [rand((m, k), F16), rand((n, k), F16)]


def image(d, channels=(16, 64, 96, 256)):
    """Batch, channels, side, side."""
    c, s = d.pick(list(channels)), d.length([14, 28, 31, 56, 112])
    # At most 256 images: with few channels the rows for a budget would be thousands.
    return min(d.rows(c * s * s), 256), c, s, s


@line
def patchify(d):
    b, p, s = 1 + d.below(16), d.pick([14, 16]), d.pick([8, 14, 16, 24])

    def f(x):
        # A vision transformer's patches: a permutation of six dimensions and nothing else.
        x = x.reshape(b, 3, s, p, s, p)
        return x.permute(0, 2, 4, 3, 5, 1).reshape(b, s * s, p * p * 3)

    return f, [rand((b, 3, s * p, s * p), d.dtype())]


@line
def unpatchify(d):
    b, p, c, s = 1 + d.below(16), 2, d.pick([4, 8, 16]), d.length([16, 32, 64])

    def f(x):
        x = x.reshape(b, s, s, p, p, c)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(b, c, s * p, s * p)

    return f, [rand((b, s * s, p * p * c), d.dtype())]


@line
def window_partition(d):
    b, c, w, s = 1 + d.below(16), d.pick([96, 128, 192]), 7, d.pick([7, 14, 28, 56])

    def f(x):
        # Swin's shifted windows: a rotation by half a window before the partition.
        x = torch.roll(x, shifts=(-3, -3), dims=(1, 2))
        x = x.view(b, s // w, w, s // w, w, c)
        return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, w * w, c)

    return f, [rand((b, s, s, c), d.dtype())]


@line
def pixel_shuffle(d):
    b, c, s = 1 + d.below(8), d.pick([3, 16, 64]), d.length([24, 48, 61, 128])
    return lambda x, k: F.relu(F.pixel_shuffle(x + k[:, None, None], 2)), [
        rand((b, 4 * c, s, s), d.dtype()), rand((4 * c,), BF16)]


@line
def upsample_nearest(d):
    b, c, s, _ = image(d)
    t = d.dtype()
    # A quarter of the batch, since the result has four times the elements.
    b = 1 + b // 4
    return lambda x, skip: torch.cat([F.interpolate(x, scale_factor=2, mode="nearest"), skip], dim=1), [
        rand((b, c, s, s), t), rand((b, c // 2, 2 * s, 2 * s), t)]


@line
def upsample_bilinear(d):
    b, c, s, _ = image(d)
    return lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False), [
        rand((1 + b // 4, c, s, s))]


@line
def global_average_pool(d):
    shape = image(d)
    return lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), [rand(shape, d.dtype())]


@line
def adaptive_average_pool(d):
    shape = image(d)
    return lambda x: F.adaptive_avg_pool2d(x, (7, 7)), [rand(shape, d.dtype())]


@line
def max_pool(d):
    shape = image(d)
    return lambda x: F.max_pool2d(F.relu(x), kernel_size=3, stride=2, padding=1), [rand(shape, d.dtype())]


@line
def average_pool(d):
    shape = image(d)
    return lambda x: F.avg_pool2d(x, 2), [rand(shape, d.dtype())]


@line
def generalized_mean_pool(d):
    shape = image(d)
    # The generalized mean: two powers around a reduction.
    return lambda x, p: x.clamp(min=1e-6).pow(p).mean(dim=(-2, -1)).pow(1.0 / p), [rand(shape), uniform((1,)) + 2.5]


@line
def squeeze_excite(d):
    b, c, s, _ = image(d)
    t = d.dtype()
    r = c // 4

    def f(x, w1, b1, w2, b2):
        # Two small products between a reduction and a broadcast of the same image.
        z = F.relu(F.linear(x.mean((2, 3)), w1, b1))
        return x * torch.sigmoid(F.linear(z, w2, b2))[:, :, None, None]

    return f, [rand((b, c, s, s), t), rand((r, c), t), rand((r,), t), rand((c, r), t), rand((c,), t)]


@line
def convolution_1x1(d):
    b, c, s, _ = image(d)
    o = d.pick([16, 64, 128])
    t = d.dtype()
    # A product over the middle dimension, which no library takes without a transposition.
    return lambda x, w, k: F.relu(torch.einsum("bchw,oc->bohw", x, w) + k[:, None, None]), [
        rand((b, c, s, s), t), rand((o, c), t) * 0.1, rand((o,), t)]


@line
def convolution_3x3(d):
    b, c, s, _ = image(d, (3, 16, 64))
    o = d.pick([16, 64])
    t = d.dtype()
    return lambda x, w, k: F.relu(F.conv2d(x, w, k, padding=1)), [
        rand((min(b, 16), c, s, s), t), rand((o, c, 3, 3), t) * 0.1, rand((o,), t)]


@line
def depthwise_convolution(d):
    b, c, s, _ = image(d)
    t = d.dtype()
    return lambda x, w, k: F.conv2d(x, w, k, padding=3, groups=c), [
        # 7 x 7 for each channel by itself, as in ConvNeXt.
        rand((min(b, 8), c, s, s), t), rand((c, 1, 7, 7), t) * 0.1, rand((c,), t)]


@line
def convolution_unfolded(d):
    b, c, s, _ = image(d, (3, 16, 64))
    b = min(b, 8)
    o = d.pick([16, 64])
    # The window matrix spelled out: nine times the image, if it is stored.
    return lambda x, w: (w @ F.unfold(x, 3, padding=1)).view(b, o, s, s), [rand((b, c, s, s)), rand((o, c * 9)) * 0.1]


@line
def total_variation(d):
    b, s = 1 + d.below(16), d.length([64, 127, 256, 384])

    def f(x):
        # Two differences of shifted views, of different shapes.
        return (x[..., 1:, :] - x[..., :-1, :]).abs().mean() + (x[..., :, 1:] - x[..., :, :-1]).abs().mean()

    return f, [uniform((b, 3, s, s), d.dtype())]


@line
def structural_similarity(d):
    b, s = 1 + d.below(8), d.length([64, 127, 256, 384])

    def f(a, b):
        mu_a, mu_b = F.avg_pool2d(a, 3, 1), F.avg_pool2d(b, 3, 1)
        # The variance as a difference of two means of windows: digits go, on both sides alike.
        var_a = F.avg_pool2d(a * a, 3, 1) - mu_a ** 2
        var_b = F.avg_pool2d(b * b, 3, 1) - mu_b ** 2
        cov = F.avg_pool2d(a * b, 3, 1) - mu_a * mu_b
        n = (2 * mu_a * mu_b + 0.01 ** 2) * (2 * cov + 0.03 ** 2)
        return (n / ((mu_a ** 2 + mu_b ** 2 + 0.01 ** 2) * (var_a + var_b + 0.03 ** 2))).mean()

    return f, [uniform((b, 3, s, s)), uniform((b, 3, s, s))]


@line
def grayscale_contrast(d):
    b, s = 1 + d.below(16), d.length([32, 113, 224, 299])

    def f(x, factor):
        r, g, b = x.unbind(dim=-3)
        # The weights of ITU-R BT.601.
        gray = (0.2989 * r + 0.587 * g + 0.114 * b).unsqueeze(-3)
        mean = gray.mean(dim=(-3, -2, -1), keepdim=True)
        return (factor[:, None, None, None] * x + (1 - factor[:, None, None, None]) * mean).clamp(0, 1)

    return f, [uniform((b, 3, s, s)), uniform((b,)) + 0.5]


@line
def normalize_and_flip(d):
    b, s = 1 + d.below(32), d.length([32, 113, 224, 299])

    def f(img, mean, std, flip):
        x = img.float().div(255).sub(mean[:, None, None]).div(std[:, None, None])
        # A flip of some of the images: the place that is read depends on the image.
        return torch.where(flip[:, None, None, None], x.flip(-1), x).half()

    return f, [integers(256, (b, 3, s, s)).to(torch.uint8), uniform((3,)), uniform((3,)) + 0.5, uniform((b,)) < 0.5]


@line
def mixup(d):
    b, s = 2 + d.below(32), d.length([32, 113, 224])
    t = d.dtype()

    def f(x, y, perm, lam):
        l4 = lam.view(-1, 1, 1, 1)
        # Rows taken by a permutation, which only the run knows.
        return l4 * x + (1 - l4) * x[perm], lam[:, None] * y + (1 - lam[:, None]) * y[perm]

    return f, [rand((b, 3, s, s), t), uniform((b, 1000), t), torch.argsort(uniform((b,))), uniform((b,), t)]


@line
def random_erase(d):
    b, s = 1 + d.below(32), d.length([32, 113, 224])

    def f(x, top, left, h, w):
        i = torch.arange(s, device=x.device)
        rows = (i >= top[:, None]) & (i < (top + h)[:, None])
        cols = (i >= left[:, None]) & (i < (left + w)[:, None])
        return x.masked_fill((rows[:, :, None] & cols[:, None, :])[:, None], 0.0)

    return f, [rand((b, 3, s, s), d.dtype()), *(integers(s, (b,)) for _ in range(4))]


def boxes(n):
    xy = uniform((n, 2)) * 500
    # One pixel wide at the least, so that no area is zero.
    return torch.cat([xy, xy + uniform((n, 2)) * 100 + 1], 1)


@line
def box_iou(d):
    m, n = 20 + d.upto(5000), 1 + d.upto(3000)

    def f(a, b):
        area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
        area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        # Every box with every box: the corners broadcast to a matrix that is never wanted itself.
        lt = torch.max(a[:, None, :2], b[:, :2])
        rb = torch.min(a[:, None, 2:], b[:, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[:, :, 0] * wh[:, :, 1]
        return inter / (area_a[:, None] + area_b - inter)

    return f, [boxes(m), boxes(n)]


@line
def decode_boxes(d):
    n = d.pick([1, 20, 80])
    m = d.rows(4 * n, 1 << 24)

    def f(deltas, anchors):
        w, h = anchors[:, 2] - anchors[:, 0], anchors[:, 3] - anchors[:, 1]
        cx, cy = anchors[:, 0] + 0.5 * w, anchors[:, 1] + 0.5 * h
        dx, dy = deltas[:, 0::4] / 10, deltas[:, 1::4] / 10
        # 4.135 is log(1000 / 16), the limit of torchvision's own coder.
        dw, dh = (deltas[:, 2::4] / 5).clamp(max=4.135), (deltas[:, 3::4] / 5).clamp(max=4.135)
        x, y = dx * w[:, None] + cx[:, None], dy * h[:, None] + cy[:, None]
        pw, ph = torch.exp(dw) * w[:, None], torch.exp(dh) * h[:, None]
        return torch.stack((x - 0.5 * pw, y - 0.5 * ph, x + 0.5 * pw, y + 0.5 * ph), dim=2).flatten(1)

    return f, [rand((m, 4 * n)), boxes(m)]


@line
def box_giou(d):
    m = d.rows(4, 1 << 22)

    def f(a, b):
        xk1, yk1 = torch.max(a[:, 0], b[:, 0]), torch.max(a[:, 1], b[:, 1])
        xk2, yk2 = torch.min(a[:, 2], b[:, 2]), torch.min(a[:, 3], b[:, 3])
        inter = torch.where((yk2 > yk1) & (xk2 > xk1), (xk2 - xk1) * (yk2 - yk1), 0.0)
        union = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]) + (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) - inter
        xc1, yc1 = torch.min(a[:, 0], b[:, 0]), torch.min(a[:, 1], b[:, 1])
        xc2, yc2 = torch.max(a[:, 2], b[:, 2]), torch.max(a[:, 3], b[:, 3])
        area = (xc2 - xc1) * (yc2 - yc1)
        # As torchvision: the two small numbers keep empty boxes from a division by zero.
        return 1 - (inter / (union + 1e-7) - (area - union) / (area + 1e-7))

    return f, [boxes(m), boxes(m)]


@line
def quaternion_to_matrix(d):
    m = d.rows(4, 1 << 22)

    def f(q):
        r, i, j, k = torch.unbind(q, -1)
        two_s = 2.0 / (q * q).sum(-1)
        o = torch.stack((
            1 - two_s * (j * j + k * k), two_s * (i * j - k * r), two_s * (i * k + j * r),
            two_s * (i * j + k * r), 1 - two_s * (i * i + k * k), two_s * (j * k - i * r),
            two_s * (i * k - j * r), two_s * (j * k + i * r), 1 - two_s * (i * i + j * j)), -1)
        return o.reshape(q.shape[:-1] + (3, 3))

    return f, [rand((m, 4))]


@line
def project_points(d):
    """By a camera of each image."""
    b, n = 1 + d.below(16), d.numel() // 16

    def f(p, rot, t, focal):
        p = p @ rot.transpose(1, 2) + t[:, None]
        # Behind the camera nothing is divided by less than 1e-6.
        return p[..., :2] / p[..., 2:].clamp(min=1e-6) * focal[:, None, None]

    return f, [rand((b, n, 3)), rand((b, 3, 3)), rand((b, 3)), uniform((b,)) * 500]


@line
def nearest_neighbours(d):
    m, n, e, k = 64 + d.upto(4000), 64 + d.upto(4000), d.pick([2, 3, 16]), d.pick([1, 8, 16])

    def f(a, b):
        # A distance matrix and the k nearest of each row.
        dist, idx = torch.cdist(a, b).topk(k, dim=-1, largest=False)
        return dist, idx

    return f, [rand((m, e)), rand((n, e))]


@line
def chamfer(d):
    b, m, n = 1 + d.below(8), 64 + d.upto(1000), 64 + d.upto(1000)

    def f(p, q):
        # Differences of three coordinates for every pair: more arithmetic than memory.
        dist = ((p[:, :, None] - q[:, None]) ** 2).sum(-1)
        return dist.min(2).values.mean(1) + dist.min(1).values.mean(1)

    return f, [rand((b, m, 3)), rand((b, n, 3))]


@line
def volume_rendering(d):
    s = d.pick([64, 96, 128, 192])
    m = d.rows(s, 1 << 22)

    def f(sigma, rgb, z):
        delta = torch.cat([z[:, 1:] - z[:, :-1], torch.full_like(z[:, :1], 1e10)], -1)
        alpha = 1.0 - torch.exp(-F.relu(sigma) * delta)
        # The light that is left before each sample: a product along the ray, moved by one.
        t = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
        w = alpha * t
        return (w[..., None] * rgb).sum(-2), (w * z).sum(-1), w

    return f, [rand((m, s)), uniform((m, s, 3)), torch.cumsum(uniform((m, s)) * 0.05, -1)]


@line
def frequency_encoding(d):
    m, k = d.rows(60, 1 << 24), d.pick([6, 10])

    def f(x):
        # Octaves of each coordinate, as NeRF has them.
        freq = 2.0 ** torch.arange(k, device=x.device)
        y = (x[:, None, :] * freq[:, None]).flatten(1)
        return torch.cat([x, torch.sin(y), torch.cos(y)], dim=-1)

    return f, [rand((m, 3))]


@line
def global_max_pool(d):
    shape = image(d)
    return lambda x: F.adaptive_max_pool2d(x, 1).flatten(1), [rand(shape, d.dtype())]


@line
def transposed_convolution(d):
    b, c, s, _ = image(d, (16, 64))
    o = d.pick([16, 32])
    t = d.dtype()
    return lambda x, w, k: F.relu(F.conv_transpose2d(x, w, k, stride=2)), [
        rand((min(b, 8), c, s, s), t), rand((c, o, 2, 2), t) * 0.1, rand((o,), t)]


@line
def spatial_transformer(d):
    b, c, s, _ = image(d, (1, 3, 16))

    def f(x, theta):
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    return f, [rand((min(b, 64), c, s, s)), rand((min(b, 64), 2, 3))]


@line
def face_normals(d):
    n, v = d.numel() // 8, 10000

    def f(verts, faces):
        a, b, c = verts[faces[:, 0]], verts[faces[:, 1]], verts[faces[:, 2]]
        return F.normalize(torch.cross(b - a, c - a, dim=-1), dim=-1)

    return f, [rand((v, 3)), integers(v, (n, 3))]
