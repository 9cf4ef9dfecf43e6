#!/bin/sh
# Times kernels by CUPTI, then the same launches by Nsight Compute, and prints both and their difference.
# Usage: bench/ncu_compare/run.sh KILN_BENCH [NCU]
# Clocks and caches stay as they are. Nsight Compute finds the launches by Kiln's own NVTX range around them.
set -eu
bench=$1
ncu=${2:-ncu}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bench" kernel-times --json "$work/cupti.jsonl" > "$work/cupti.txt"
"$ncu" --nvtx --nvtx-include kiln@kernel-times/ --clock-control none --cache-control none \
  --metrics gpu__time_duration.sum --print-kernel-base function --print-units base --page raw --csv \
  --log-file "$work/ncu.csv" "$bench" kernel-times > "$work/ncu.txt" || { cat "$work/ncu.txt" "$work/ncu.csv"; exit 1; }
# A line of JSON per kernel, and as many rows of Nsight Compute's table as it says, in the same order.
awk -v FS='","' '
  function field(text, name) {
    if (!match(text, "\"" name "\":\"?[^,\"}]*")) return ""
    text = substr(text, RSTART, RLENGTH); sub(/^[^:]*:"?/, "", text); return text
  }
  function scale() {
    if (unit ~ /^n/) return 1e-3
    if (unit ~ /^u/) return 1
    if (unit ~ /^m/) return 1e3
    if (unit ~ /^s/) return 1e6
    print "Nsight Compute gives times in " unit ", which is not understood"; broken = 1; exit 1
  }
  function median(first, count,   i, j, v, a) {
    for (i = 0; i < count; i++) {
      v = us[first + i]
      for (j = i; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1]
      a[j] = v
    }
    return count % 2 ? a[(count - 1) / 2] : (a[count / 2 - 1] + a[count / 2]) / 2
  }
  FNR == NR {
    if (index($0, "\"group\":\"kernel-times\"")) {
      ours[++n] = field($0, "kernel"); size[n] = field($0, "size")
      ours_us[n] = field($0, "median_us") + 0; times[n] = field($0, "n") + 0
    }
    next
  }
  /^"/ {
    gsub(/^"|"$/, "")
    if (!time_column) {
      for (i = 1; i <= NF; i++) { if ($i == "Kernel Name") name_column = i; if ($i ~ /^gpu__time_duration/) time_column = i }
      next
    }
    if ($1 == "") { unit = $time_column; next }
    rows++; names[rows] = $name_column; value = $time_column; gsub(/,/, "", value); us[rows] = value * scale()
  }
  END {
    if (broken) exit 1
    if (!n || !rows) { print "nothing to compare: " n + 0 " kernels of CUPTI, " rows + 0 " launches of Nsight Compute"; exit 1 }
    printf "%-28s %-14s %12s %12s %8s %4s\n", "kernel", "size", "CUPTI us", "ncu us", "differs", "n"
    first = 1
    for (k = 1; k <= n; k++) {
      if (names[first] != ours[k]) { print "launch " first " is " names[first] " for Nsight Compute, " ours[k] " for CUPTI"; exit 1 }
      theirs = median(first, times[k]); off = (ours_us[k] / theirs - 1) * 100
      printf "%-28s %-14s %12.2f %12.2f %+7.2f%% %4d\n", ours[k], size[k], ours_us[k], theirs, off, times[k]
      if (ours_us[k] >= 20 && (off > 2 || off < -2)) apart++
      first += times[k]
    }
    if (apart) print apart " of " n " kernels over 20 us differ by more than 2 %"
    exit apart > 0
  }' "$work/cupti.jsonl" "$work/ncu.csv"
