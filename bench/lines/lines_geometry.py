"""Geometry: sampling, rotations, boxes, rays and splats."""
import math

import torch
import torch.nn.functional as F

from draw import integers, line, rand, uniform


@line
def deformable_attention(d):
    """Of Deformable DETR, in two levels: each query looks at a few points of each image of features."""
    b, h, c, p = 1 + d.below(4), 8, d.pick([16, 32]), 4
    sizes = [(s, s + 3) for s in d.pick([(32, 16), (25, 13), (50, 25)])]
    q = 20 + d.upto(900)
    n = sum(x * y for x, y in sizes)

    def f(value, places, weights):
        parts = value.split([x * y for x, y in sizes], dim=1)
        grids = 2 * places - 1
        sampled = []
        for level, (height, width) in enumerate(sizes):
            image = parts[level].flatten(2).transpose(1, 2).reshape(b * h, c, height, width)
            grid = grids[:, :, :, level].transpose(1, 2).flatten(0, 1)
            sampled.append(F.grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=False))
        w = weights.transpose(1, 2).reshape(b * h, 1, q, 2 * p)
        out = (torch.stack(sampled, dim=-2).flatten(-2) * w).sum(-1).view(b, h * c, q)
        return out.transpose(1, 2).contiguous()

    return f, [rand((b, n, h, c)), uniform((b, q, h, 2, p, 2)), F.softmax(rand((b, q, h, 2 * p)), -1)]


@line
def matrix_nms(d):
    """Of SOLO: the scores of boxes decay by their overlap with better ones."""
    n = 16 + d.upto(2000)

    def f(boxes, scores, labels):
        order = torch.argsort(scores, descending=True)
        b, s, l = boxes[order], scores[order], labels[order]
        area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        wh = (torch.min(b[:, None, 2:], b[None, :, 2:]) - torch.max(b[:, None, :2], b[None, :, :2])).clamp(min=0)
        inter = wh[..., 0] * wh[..., 1]
        iou = (inter / (area[:, None] + area[None, :] - inter)) * (l[:, None] == l[None, :])
        iou = iou.triu(diagonal=1)
        most = iou.max(0).values.unsqueeze(1)
        decay = torch.exp(-2.0 * (iou ** 2 - most ** 2)).min(0).values
        return s * decay

    xy = uniform((n, 2)) * 100
    return f, [torch.cat([xy, xy + uniform((n, 2)) * 60 + 1], 1), uniform((n,)), integers(5, (n,))]


@line
def axis_angle_to_matrix(d):
    m = d.rows(3, 1 << 22)

    def f(r):
        # Rodrigues' formula; the angle is kept from zero as body models do.
        angle = torch.norm(r + 1e-8, dim=1, keepdim=True)
        x, y, z = torch.split(r / angle, 1, dim=1)
        zero = torch.zeros_like(x)
        k = torch.cat([zero, -z, y, z, zero, -x, -y, x, zero], dim=1).view(-1, 3, 3)
        sin, cos = torch.sin(angle)[:, None], torch.cos(angle)[:, None]
        eye = torch.eye(3, dtype=r.dtype, device=r.device)[None]
        return eye + sin * k + (1 - cos) * torch.bmm(k, k)

    return f, [rand((m, 3))]


@line
def quaternion_apply(d):
    """Points rotated by quaternions, as two products of quaternions."""
    m = d.rows(4, 1 << 22)

    def times(a, b):
        aw, ax, ay, az = torch.unbind(a, -1)
        bw, bx, by, bz = torch.unbind(b, -1)
        return torch.stack((aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by,
                            aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw), -1)

    def f(q, p):
        q = F.normalize(q, dim=-1)
        pure = torch.cat((p.new_zeros(p.shape[:-1] + (1,)), p), -1)
        inverse = q * torch.tensor([1.0, -1.0, -1.0, -1.0], device=q.device)
        return times(times(q, pure), inverse)[..., 1:]

    return f, [rand((m, 4)), rand((m, 3))]


@line
def splat_compositing(d):
    """Gaussian splats of a pixel, sorted by depth, blended front to back."""
    m, k = 64 + d.upto(8000), d.pick([16, 32, 61, 128])

    def f(pixel, mean, conic, opacity, color):
        delta = pixel[:, None, :] - mean
        power = -0.5 * (conic[..., 0] * delta[..., 0] ** 2 + conic[..., 2] * delta[..., 1] ** 2) \
            - conic[..., 1] * delta[..., 0] * delta[..., 1]
        alpha = (opacity * torch.exp(power)).clamp(max=0.99)
        alpha = torch.where((power > 0) | (alpha < 1.0 / 255.0), 0.0, alpha)
        through = torch.cumprod(1 - alpha, dim=1)
        before = torch.cat([torch.ones_like(through[:, :1]), through[:, :-1]], dim=1)
        w = alpha * before * (through > 1e-4)
        return (w.unsqueeze(-1) * color).sum(1) + (1 - w.sum(1, keepdim=True))

    return f, [uniform((m, 2)) * 4, uniform((m, k, 2)) * 4, uniform((m, k, 3)) * 0.3 + 0.4, uniform((m, k)),
               uniform((m, k, 3))]


@line
def hash_grid_encoding(d):
    """One level of Instant-NGP: eight corners are hashed, looked up, and weighed trilinearly."""
    m, size, res = d.numel() // 16, 1 << d.pick([14, 16, 19]), d.pick([64, 151, 512])

    def f(x, table):
        scaled = x * res
        low = torch.floor(scaled).long()
        frac = scaled - low
        out = 0
        for i in range(8):
            bit = torch.tensor([i & 1, (i >> 1) & 1, i >> 2], device=x.device)
            corner = low + bit
            key = corner[:, 0] ^ (corner[:, 1] * 2654435761) ^ (corner[:, 2] * 805459861)
            w = torch.where(bit.bool(), frac, 1 - frac).prod(dim=-1, keepdim=True)
            out = out + w * table[key % size]
        return out

    return f, [uniform((m, 3)), rand((size, 2))]


@line
def kalman_update(d):
    """Constant velocity in the plane: one prediction and one correction of each track."""
    m = 16 + d.upto(20000)

    def f(x, p, z, step, noise, r):
        x = x @ step.T
        p = step @ p @ step.T + noise
        s = p[:, :2, :2] + r
        det = s[:, 0, 0] * s[:, 1, 1] - s[:, 0, 1] * s[:, 1, 0]
        inverse = torch.stack([s[:, 1, 1], -s[:, 0, 1], -s[:, 1, 0], s[:, 0, 0]], -1).view(-1, 2, 2) / det[:, None, None]
        gain = p[:, :, :2] @ inverse
        x = x + (gain @ (z - x[:, :2]).unsqueeze(-1)).squeeze(-1)
        return x, p - gain @ p[:, :2, :]

    a = rand((m, 4, 4)) * 0.3
    step = torch.eye(4, device=a.device)
    step[0, 2] = 0.1
    step[1, 3] = 0.1
    eye = torch.eye(4, device=a.device)
    return f, [rand((m, 4)), a @ a.transpose(1, 2) + eye, rand((m, 2)), step, 0.01 * eye, eye[:2, :2] * 0.5]


@line
def splat_covariance(d):
    """Gaussian splatting: covariances of scales and rotations, seen by a camera, and their inverses."""
    m = d.numel() // 32

    def f(scale, q, points, view, focal):
        r, x, y, z = F.normalize(q, dim=-1).unbind(-1)
        rot = torch.stack([
            1 - 2 * (y * y + z * z), 2 * (x * y - r * z), 2 * (x * z + r * y),
            2 * (x * y + r * z), 1 - 2 * (x * x + z * z), 2 * (y * z - r * x),
            2 * (x * z - r * y), 2 * (y * z + r * x), 1 - 2 * (x * x + y * y)], dim=-1).view(-1, 3, 3)
        l = rot * torch.exp(scale)[:, None, :]
        cov = l @ l.transpose(1, 2)
        t = points @ view.T
        tz = t[:, 2].clamp(min=1.0)
        tx, ty = (t[:, 0] / tz).clamp(-1.3, 1.3) * tz, (t[:, 1] / tz).clamp(-1.3, 1.3) * tz
        zero = torch.zeros_like(tz)
        j = torch.stack([focal / tz, zero, -focal * tx / tz ** 2,
                         zero, focal / tz, -focal * ty / tz ** 2], -1).view(-1, 2, 3)
        w = j @ view
        c = w @ cov @ w.transpose(1, 2) + 0.3 * torch.eye(2, device=q.device)
        det = (c[:, 0, 0] * c[:, 1, 1] - c[:, 0, 1] ** 2).clamp(min=1e-6)
        return torch.stack([c[:, 1, 1] / det, -c[:, 0, 1] / det, c[:, 0, 0] / det], -1)

    return f, [rand((m, 3)) * 0.3 - 2, rand((m, 4)), rand((m, 3)), rand((3, 3)), uniform(()) + 2]


@line
def camera_rays(d):
    """Origins, directions and moments (Pluecker) of the rays of each pixel of each camera."""
    b, h, w = 1 + d.below(12), d.length([64, 111, 256]), d.length([64, 97, 320])

    def f(pose, focal):
        j, i = torch.meshgrid(torch.arange(h, device=pose.device, dtype=torch.float32),
                              torch.arange(w, device=pose.device, dtype=torch.float32), indexing="ij")
        dirs = torch.stack([(i - w * 0.5 + 0.5) / focal, -(j - h * 0.5 + 0.5) / focal, -torch.ones_like(i)], -1)
        rays = (dirs[None, ..., None, :] * pose[:, None, None, :3, :3]).sum(-1)
        rays = rays / rays.norm(dim=-1, keepdim=True)
        origin = pose[:, None, None, :3, 3].expand(rays.shape)
        return torch.cat([torch.cross(origin, rays, dim=-1), rays], dim=-1).permute(0, 3, 1, 2)

    return f, [rand((b, 3, 4)), uniform(()) * 100 + math.pi]
