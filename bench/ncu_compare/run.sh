#!/bin/sh
# Times kernels by CUPTI and by Nsight Compute, in turns of a process each, and prints both and their difference.
# Usage: bench/ncu_compare/run.sh KILN_BENCH [NCU [ROUNDS]]
#
# Both look at the same launches of `kiln_bench kernel-times`, each alone on an idle GPU with the same caches; Nsight
# Compute leaves clocks and caches as they are, and finds the launches by Kiln's own NVTX range around each. A process
# has its memory where it happens to lie, and its times with it. So each side has a few processes, and their medians
# are compared; "apart" is how far those of one side are from each other.
#
# gpu__time_duration is longer than a kernel by what it takes to start and to drain it, which the shortest kernel shows
# (first row: most of it is that). The last two columns are without it, and what is held to 2 %.
set -eu
bench=$1
ncu=${2:-ncu}
rounds=${3:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for round in $(seq "$rounds"); do
  "$bench" kernel-times --json "$work/cupti.jsonl" > "$work/cupti.txt" || { cat "$work/cupti.txt"; exit 1; }
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
      print "Nsight Compute gives times in " unit ", which is not understood" > "/dev/stderr"; broken = 1; exit 1
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
        ours_us[n] = field($0, "median_us"); times[n] = field($0, "n") + 0
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
      if (!n || !rows) { print "nothing to compare: " n + 0 " kernels of CUPTI, " rows + 0 " launches of Nsight Compute" > "/dev/stderr"; exit 1 }
      first = 1
      for (k = 1; k <= n; k++) {
        if (names[first] != ours[k]) { print "launch " first " is " names[first] " for Nsight Compute, " ours[k] " for CUPTI" > "/dev/stderr"; exit 1 }
        printf "%s %s %s %.3f %d\n", ours[k], size[k], ours_us[k], median(first, times[k]), times[k]
        first += times[k]
      }
    }' "$work/cupti.jsonl" "$work/ncu.csv" >> "$work/rounds"
done
awk '
  function median(a, key, count,   i, j, v, s) {
    for (i = 1; i <= count; i++) {
      v = a[key, i]
      for (j = i; j > 1 && s[j - 1] > v; j--) s[j] = s[j - 1]
      s[j] = v
    }
    spread = s[count] - s[1]
    return count % 2 ? s[(count + 1) / 2] : (s[count / 2] + s[count / 2 + 1]) / 2
  }
  {
    key = $1 " " $2
    if (!(key in rounds)) { order[++n] = key; name[key] = $1; size[key] = $2 }
    rounds[key]++; ours[key, rounds[key]] = $3 + 0; theirs[key, rounds[key]] = $4 + 0; times[key] += $5
  }
  END {
    printf "%-20s %-16s %9s %7s %9s %7s %8s %9s %8s %4s\n",
           "kernel", "size", "CUPTI us", "apart", "ncu us", "apart", "differs", "ncu net", "differs", "n"
    for (k = 1; k <= n; k++) {
      key = order[k]
      us = median(ours, key, rounds[key]); us_apart = spread
      ncu_us = median(theirs, key, rounds[key]); ncu_apart = spread
      if (k == 1) around = ncu_us - us
      net = ncu_us - around
      raw = (us / ncu_us - 1) * 100; off = (us / net - 1) * 100
      printf "%-20s %-16s %9.2f %6.2f%% %9.2f %6.2f%% %+7.2f%% %9.2f %+7.2f%% %4d\n", name[key], size[key],
             us, us_apart / us * 100, ncu_us, ncu_apart / ncu_us * 100, raw, net, off, times[key]
      if (us < 20) continue
      over++
      if (raw > 2 || raw < -2) raw_wrong++
      if (off > 2 || off < -2) wrong++
    }
    printf "%.2f us around a kernel in Nsight Compute\x27s figure\n", around
    print raw_wrong + 0 " of " over + 0 " kernels over 20 us differ by more than 2 %, " wrong + 0 " without that"
    exit wrong > 0
  }' "$work/rounds"
