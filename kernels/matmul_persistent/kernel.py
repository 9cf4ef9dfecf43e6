# C = activation(A @ B + bias). A and B are read and C is written in blocks, through tensor descriptors; either operand
# may lie transposed in memory. matmul_persistent: programs that stay, each takes every NUM_PROGRAMS-th tile of C.
# matmul_once: where all tiles have a place at once, a program for each. matmul_split: where C has few tiles, several
# programs share the sum of each.
import triton
import triton.language as tl


@triton.jit
def gelu_tanh(x):
    # 0.5 x (1 + tanh u) is x sigmoid(2 u), and that max(x, 0) - |x| sigmoid(-|2 u|), with log2 of the latter as a
    # polynomial in f32.
    a = tl.minimum(tl.abs(x), 16.0)
    p = -7.77513560e-06 * a + 7.90608028e-05
    p = p * a - 1.50605221e-04
    p = p * a - 6.67084649e-04
    p = p * a + 6.95823866e-04
    p = p * a + 6.91082561e-03
    p = p * a - 5.10982573e-02
    p = p * a - 4.59309429e-01
    p = p * a - 1.15109706
    p = p * a - 1.00000012
    return tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL) - a * tl.exp2(tl.maximum(p, -126.0))


@triton.jit
def gelu_tanh_of_half(x):
    # The same for a result of 16 bits: with fewer terms, within 2^-14 |y| + 2^-24 |x| before y is rounded.
    a = tl.minimum(tl.abs(x), 7.0)
    p = 4.56379232e-04 * a - 5.89914908e-03
    p = p * a + 2.12620113e-02
    p = p * a - 6.59614398e-02
    p = p * a - 4.52448682e-01
    p = p * a - 1.15208136
    p = p * a - 1.00001629
    return tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL) - a * tl.exp2(p)


@triton.jit
def tile_of(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    # Programs that run together share rows of A and columns of B: GROUP_M rows of tiles, column by column.
    in_group = GROUP_M * tiles_n
    first = tile // in_group * GROUP_M
    rows = min(tiles_m - first, GROUP_M)
    return first + tile % in_group % rows, tile % in_group // rows


@triton.jit
def matrix(ptr, rows, columns, stride, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
           IS_TRANSPOSED: tl.constexpr):
    # A matrix [rows, columns] that may lie transposed in memory, to be read in blocks.
    if IS_TRANSPOSED:
        desc = tl.make_tensor_descriptor(ptr, [columns, rows], [stride, 1], [BLOCK_COLUMNS, BLOCK_ROWS])
    else:
        desc = tl.make_tensor_descriptor(ptr, [rows, columns], [stride, 1], [BLOCK_ROWS, BLOCK_COLUMNS])
    return desc


@triton.jit
def block(desc, row, column, IS_TRANSPOSED: tl.constexpr):
    if IS_TRANSPOSED:
        values = desc.load([column, row]).T
    else:
        values = desc.load([row, column])
    return values


@triton.jit
def fleeting_block(desc, row, column, IS_TRANSPOSED: tl.constexpr, EVICTION: tl.constexpr):
    # Under Triton, whose desc.load takes no eviction_policy, EVICTION must be "".
    if EVICTION == "":
        values = block(desc, row, column, IS_TRANSPOSED)
    elif IS_TRANSPOSED:
        values = desc.load([column, row], eviction_policy=EVICTION).T
    else:
        values = desc.load([row, column], eviction_policy=EVICTION)
    return values


@triton.jit
def finished(acc, bias_ptr, column, N, BLOCK_N: tl.constexpr, ACTIVATION: tl.constexpr, OUT: tl.constexpr):
    if bias_ptr is not None:
        columns = column + tl.arange(0, BLOCK_N)
        bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
        acc += bias.to(acc.dtype)[None, :]
    if ACTIVATION == "gelu_tanh":
        if OUT.primitive_bitwidth == 16:
            acc = gelu_tanh_of_half(acc)
        else:
            acc = gelu_tanh(acc)
    return acc.to(OUT)


@triton.jit
def matmul_persistent(a_ptr, b_ptr, c_ptr, bias_ptr, M, N, K, stride_a, stride_b, stride_c, A_IS_KM: tl.constexpr,
                      B_IS_NK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                      GROUP_M: tl.constexpr, NUM_PROGRAMS: tl.constexpr, ACTIVATION: tl.constexpr,
                      ACC: tl.constexpr):
    a_desc = matrix(a_ptr, M, K, stride_a, BLOCK_M, BLOCK_K, A_IS_KM)
    b_desc = matrix(b_ptr, K, N, stride_b, BLOCK_K, BLOCK_N, B_IS_NK)
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_c, 1], [BLOCK_M, BLOCK_N])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, NUM_PROGRAMS):
        tile_m, tile_n = tile_of(tile, tiles_m, tiles_n, GROUP_M)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
        for step in range(steps):
            a = block(a_desc, row, step * BLOCK_K, A_IS_KM)
            b = block(b_desc, step * BLOCK_K, column, B_IS_NK)
            acc = tl.dot(a, b, acc)
        out = finished(acc, bias_ptr, column, N, BLOCK_N, ACTIVATION, c_ptr.dtype.element_ty)
        c_desc.store([row, column], out)


@triton.jit
def matmul_once(a_ptr, b_ptr, c_ptr, bias_ptr, M, N, K, stride_a, stride_b, stride_c, A_IS_KM: tl.constexpr,
                B_IS_NK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                A_EVICTION: tl.constexpr, B_EVICTION: tl.constexpr, ACTIVATION: tl.constexpr, ACC: tl.constexpr):
    a_desc = matrix(a_ptr, M, K, stride_a, BLOCK_M, BLOCK_K, A_IS_KM)
    b_desc = matrix(b_ptr, K, N, stride_b, BLOCK_K, BLOCK_N, B_IS_NK)
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_c, 1], [BLOCK_M, BLOCK_N])
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for step in range(tl.cdiv(K, BLOCK_K)):
        a = fleeting_block(a_desc, row, step * BLOCK_K, A_IS_KM, A_EVICTION)
        b = fleeting_block(b_desc, step * BLOCK_K, column, B_IS_NK, B_EVICTION)
        acc = tl.dot(a, b, acc)
    out = finished(acc, bias_ptr, column, N, BLOCK_N, ACTIVATION, c_ptr.dtype.element_ty)
    c_desc.store([row, column], out)


@triton.jit
def matmul_split(a_ptr, b_ptr, c_ptr, bias_ptr, sums_ptr, turns_ptr, M, N, K, stride_a, stride_b, stride_c,
                 A_IS_KM: tl.constexpr, B_IS_NK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                 BLOCK_K: tl.constexpr, SPLITS: tl.constexpr, ACTIVATION: tl.constexpr, ACC: tl.constexpr):
    # Program (tile, split) sums its part of K into sums_ptr [tiles, SPLITS, BLOCK_M, BLOCK_N]. Who comes last at a tile
    # (turns_ptr [tiles], zeros before and after) adds the parts, in their order, so that results repeat.
    a_desc = matrix(a_ptr, M, K, stride_a, BLOCK_M, BLOCK_K, A_IS_KM)
    b_desc = matrix(b_ptr, K, N, stride_b, BLOCK_K, BLOCK_N, B_IS_NK)
    tile = tl.program_id(0)
    split = tl.program_id(1)
    tiles_m = tl.cdiv(M, BLOCK_M)
    row = tile % tiles_m * BLOCK_M
    column = tile // tiles_m * BLOCK_N
    steps = tl.cdiv(K, BLOCK_K)
    share = tl.cdiv(steps, SPLITS)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for step in range(split * share, min(split * share + share, steps)):
        a = block(a_desc, row, step * BLOCK_K, A_IS_KM)
        b = block(b_desc, step * BLOCK_K, column, B_IS_NK)
        acc = tl.dot(a, b, acc)
    rows = tl.arange(0, BLOCK_M)[:, None]
    columns = tl.arange(0, BLOCK_N)[None, :]
    parts = sums_ptr + tile.to(tl.int64) * (SPLITS * BLOCK_M * BLOCK_N) + rows * BLOCK_N + columns
    tl.store(parts + split * (BLOCK_M * BLOCK_N), acc)
    tl.debug_barrier()
    if tl.atomic_add(turns_ptr + tile, 1, sem="acq_rel") == SPLITS - 1:
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
        for part in range(SPLITS):
            acc += tl.load(parts + part * (BLOCK_M * BLOCK_N), cache_modifier=".cg")
        out = finished(acc, bias_ptr, column, N, BLOCK_N, ACTIVATION, c_ptr.dtype.element_ty)
        c_ptrs = c_ptr + (row + rows).to(tl.int64) * stride_c + column + columns
        tl.store(c_ptrs, out, mask=(row + rows < M) & (column + columns < N))
        tl.store(turns_ptr + tile, 0)
