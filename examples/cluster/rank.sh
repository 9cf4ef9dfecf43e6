#!/bin/sh
# One rank of an MPI job tunes its share of the configurations:
#   mpirun -n 8 examples/cluster/rank.sh results && kiln merge results
set -eu
out=${1:?usage: mpirun -n N rank.sh FOLDER}
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:?no rank: start it with mpirun or srun}}}
size=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-${SLURM_NTASKS:?no number of ranks}}}
on_host=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-0}}}
# Ranks of one host share its GPUs; more ranks than GPUs take turns.
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
device=cpu
[ "$gpus" -eq 0 ] || device=cuda:$((on_host % gpus))
exec "${KILN:-kiln}" --device "$device" tune --file "$(dirname "$0")/softmax.py" \
  'softmax_kernel[(rows,)](x, out, columns, BLOCK=1024)' BLOCK='[1024, 2048]' num_warps='[1, 2, 4, 8]' \
  num_stages='[2, 3]' --shard "$rank/$size" --out "$out"
