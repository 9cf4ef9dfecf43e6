#!/usr/bin/env bash
# Makes the README's pictures from what the program prints and writes: prompt.svg, and report.png and report-dark.png by
# a chromium without a window (Debian: chromium, pngquant).
# usage: docs/pictures/make.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "$0")"
program=$(realpath "${1:-../../build/dev/bin/kiln}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 terminal_svg.py prompt.svg prompt.txt --columns 122 --program "$program" >/dev/null

(cd "$scratch" && "$program" - <"$OLDPWD/report.txt" >/dev/null)
# The page with its first finding and one open row.
cat >>"$scratch/run.html" <<'JS'
<style>.findings li:nth-child(n+2) { display: none }</style>
<script>
const kernel = [...document.querySelectorAll("tr")].find((r) => /^gelu_mul_softmax_kernelkernel/.test(r.textContent));
kernel.querySelector("button.more").click();
</script>
JS
for scheme in light dark; do
  suffix=$([ "$scheme" = dark ] && echo -dark || true)
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1120,1120 \
    --blink-settings=preferredColorScheme=$([ "$scheme" = dark ] && echo 0 || echo 1) \
    --screenshot="$PWD/report$suffix.png" "file://$scratch/run.html" >/dev/null 2>&1
  pngquant --force --ext .png 64 "report$suffix.png"
done
ls -l prompt.svg report.png report-dark.png
