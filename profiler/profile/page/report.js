"use strict";
// The page's timeline, drawn by level of detail, and its tables, which sort and whose rows open. The data are rows of slices that do not
// overlap, so that what a view shows is found by binary search and drawing takes about as many steps as there are pixels.

const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("canvas");
const tip = document.getElementById("tip");
const details = document.getElementById("details");
const frame = document.getElementById("timeline");
const paint = canvas.getContext("2d");

const ROW = 18, GAP = 6, AXIS = 22, GROUP = 20, MEMORY = 60;
const SHORTEST = 10;  // nanoseconds that a view shows at least

// Starts come as differences, and all times in nanoseconds.
for (const row of data.rows) {
  let at = 0;
  row.start = Float64Array.from(row.s, (step) => (at += step));
  row.end = Float64Array.from(row.d, (length, i) => row.start[i] + length);
}
for (const series of data.memory) {
  let at = 0;
  series.at = Float64Array.from(series.t, (step) => (at += step));
  series.low = Math.min(0, ...minMax(series.v));
  series.high = Math.max(1, ...minMax(series.v));
}
// Arrows: from a call to what it queued.
const arrowsFrom = new Map(), arrowTo = new Map();
for (let i = 0; i < data.arrows.length; i += 4) {
  const [fromRow, fromIndex, toRow, toIndex] = data.arrows.slice(i, i + 4);
  const from = fromRow + ":" + fromIndex;
  if (!arrowsFrom.has(from)) arrowsFrom.set(from, []);
  arrowsFrom.get(from).push([toRow, toIndex]);
  arrowTo.set(toRow + ":" + toIndex, [fromRow, fromIndex]);
}

function minMax(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return values.length ? [low, high] : [0, 0];
}

// --- places ---------------------------------------------------------------------------------------------------------

let height = 0, label = 120;
const headings = [];  // {text, y}
for (const row of data.rows) row.y = -1;
{
  let y = AXIS, group = null;
  for (const lane of data.lanes) {
    if (lane.group !== group) {
      headings.push({text: group = lane.group, y});
      y += GROUP;
    }
    lane.y = y;
    for (const r of lane.rows) {
      data.rows[r].y = y;
      y += ROW;
    }
    y += GAP;
  }
  if (data.memory.length) {
    headings.push({text: "memory", y});
    y += GROUP;
    for (const series of data.memory) {
      series.y = y;
      y += MEMORY + GAP;
    }
  }
  height = Math.max(y, 60);
}

let width = 0, view = [0, Math.max(data.span, SHORTEST)], hover = null, kept = null, matches = null;

const toX = (ns) => label + ((ns - view[0]) / (view[1] - view[0])) * (width - label);
const toTime = (x) => view[0] + ((x - label) / (width - label)) * (view[1] - view[0]);

// The first slice of a row that ends after a time.
function firstAfter(ends, time, from = 0) {
  let low = from, high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

// --- colours --------------------------------------------------------------------------------------------------------

let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  colours = {ink: of("--ink"), soft: of("--soft"), line: of("--line"), panel: of("--panel"), page: of("--page"),
             accent: of("--accent"), slice: of("--slice-ink"), arrow: of("--arrow"), memory: of("--c-memory"),
             kernelLight: of("--c-kernel-light"), kernelColour: of("--c-kernel-colour"), kernel: new Map()};
  for (const name of ["statement", "range", "operation", "launch", "compile", "driver", "wait", "copy", "fill", "overhead"])
    colours[name] = of("--c-" + name);
}

// A kernel has the same colour everywhere: its hue comes from its name.
function colourOf(row, i) {
  const category = data.categories[row.c[i]];
  if (category !== "kernel") return colours[category];
  const name = row.n[i];
  if (!colours.kernel.has(name)) {
    let hash = 7;
    for (const c of data.strings[name]) hash = (hash * 31 + c.codePointAt(0)) >>> 0;
    colours.kernel.set(name, `hsl(${hash % 360} ${colours.kernelColour} ${colours.kernelLight})`);
  }
  return colours.kernel.get(name);
}

// --- drawing --------------------------------------------------------------------------------------------------------

function timeText(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 1e6) return `${(ns / 1e3).toFixed(size < 1e5 ? 2 : 1)} µs`;
  if (size < 1e9) return `${(ns / 1e6).toFixed(3)} ms`;
  return `${(ns / 1e9).toFixed(3)} s`;
}

/// A time at the axis, in the unit of the view's end and with the digits that tell one tick from the next.
function axisText(t, tick) {
  const [size, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([s]) => Math.max(view[1], tick) >= s) ?? [1, "ns"];
  return `${(t / size).toFixed(Math.max(0, Math.ceil(Math.log10(size / tick) - 1e-9)))} ${unit}`;
}

function bytesText(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (Math.abs(bytes) >= 1000 && unit + 1 < units.length) {
    bytes /= 1000;
    ++unit;
  }
  return `${unit ? bytes.toFixed(2) : bytes} ${units[unit]}`;
}

function drawRow(row) {
  const {start, end, y} = row;
  const perPixel = (view[1] - view[0]) / (width - label);
  for (let i = firstAfter(end, view[0]); i < start.length && start[i] < view[1];) {
    const left = Math.max(toX(start[i]), label), right = Math.min(toX(end[i]), width);
    const colour = colourOf(row, i);
    if (paint.fillStyle !== colour) paint.fillStyle = colour;
    if (matches) paint.globalAlpha = matches.has(row.n[i]) ? 1 : 0.2;
    if (right - left < 1) {
      // What is thinner than a pixel: one line for all that begins in it.
      const pixel = Math.floor(left);
      paint.fillRect(pixel, y, 1, ROW - 2);
      i = Math.max(i + 1, firstAfter(end, view[0] + (pixel + 1 - label) * perPixel, i));
      continue;
    }
    paint.fillRect(left, y, right - left, ROW - 2);
    if (right - left > 24) {
      paint.fillStyle = colours.slice;
      const room = right - left - 6, text = data.strings[row.n[i]];
      const fits = Math.floor(room / 6.1);
      paint.fillText(text.length > fits ? text.slice(0, Math.max(fits - 1, 1)) + "…" : text, left + 3, y + ROW / 2 - 1, room);
    }
    ++i;
  }
  paint.globalAlpha = 1;
}

function drawAxis() {
  const spanOfTick = ((view[1] - view[0]) / (width - label)) * 110;
  const power = 10 ** Math.floor(Math.log10(spanOfTick));
  const tick = [1, 2, 5, 10].map((m) => m * power).find((t) => t >= spanOfTick);
  paint.strokeStyle = colours.line;
  paint.fillStyle = colours.soft;
  paint.beginPath();
  for (let t = Math.ceil(view[0] / tick) * tick; t <= view[1]; t += tick) {
    const x = Math.round(toX(t)) + 0.5;
    paint.moveTo(x, AXIS - 4);
    paint.lineTo(x, height);
    const text = axisText(t, tick);
    if (x + 3 + paint.measureText(text).width <= width) paint.fillText(text, x + 3, AXIS / 2);
  }
  paint.stroke();
}

function drawMemory(series) {
  const yOf = (bytes) => series.y + MEMORY - ((bytes - series.low) / (series.high - series.low)) * MEMORY;
  const {at, v} = series;
  const zero = yOf(0);
  paint.fillStyle = colours.memory;
  // A column per pixel: what the counter was at most in it.
  let i = firstAfter(at, view[0]), value = i ? v[i - 1] : 0;
  for (let x = Math.max(label, Math.floor(toX(0))); x < width; ++x) {
    const until = toTime(x + 1);
    if (until > data.span + (view[1] - view[0]) / (width - label)) break;
    let most = value;
    for (; i < at.length && at[i] < until; ++i) {
      value = v[i];
      if (Math.abs(value) > Math.abs(most)) most = value;
    }
    const top = yOf(most);
    paint.fillRect(x, Math.min(top, zero), 1, Math.max(1, Math.abs(zero - top)));
  }
  paint.fillStyle = colours.soft;
  paint.textAlign = "right";
  paint.fillText(bytesText(series.high), label - 6, series.y + 6);
  paint.fillText(bytesText(series.low), label - 6, series.y + MEMORY - 6);
  paint.textAlign = "left";
  paint.fillStyle = colours.ink;
  paint.fillText(series.name, label + 4, series.y + 7);
}

function drawArrow([fromRow, fromIndex], [toRow, toIndex]) {
  const from = data.rows[fromRow], to = data.rows[toRow];
  const x0 = toX(from.start[fromIndex]), y0 = from.y + ROW - 2, x1 = toX(to.start[toIndex]), y1 = to.y;
  paint.beginPath();
  paint.moveTo(x0, y0);
  paint.bezierCurveTo(x0, y0 + 30, x1, y1 - 30, x1, y1);
  paint.stroke();
  paint.beginPath();
  paint.moveTo(x1, y1);
  paint.lineTo(x1 - 3, y1 - 6);
  paint.lineTo(x1 + 3, y1 - 6);
  paint.fill();
}

function outline(slice, colour) {
  const row = data.rows[slice[0]], left = Math.max(toX(row.start[slice[1]]), label), right = Math.min(toX(row.end[slice[1]]), width);
  if (right < label || left > width) return;
  paint.strokeStyle = colour;
  paint.lineWidth = 2;
  paint.strokeRect(left, row.y, Math.max(right - left, 2), ROW - 2);
  paint.lineWidth = 1;
}

function drawArrowsOf(slice) {
  const MOST = 200;
  const key = slice[0] + ":" + slice[1];
  paint.strokeStyle = paint.fillStyle = colours.arrow;
  if (arrowTo.has(key)) drawArrow(arrowTo.get(key), slice);
  for (const to of (arrowsFrom.get(key) || []).slice(0, MOST)) drawArrow(slice, to);
}

let drawn = 0;  // a redraw that waits for the next frame
function draw() {
  if (drawn) return;
  drawn = requestAnimationFrame(() => {
    drawn = 0;
    drawNow();
  });
}

function drawNow() {
  const scale = window.devicePixelRatio || 1;
  paint.setTransform(scale, 0, 0, scale, 0, 0);
  paint.clearRect(0, 0, width, height);
  paint.font = "11px system-ui, sans-serif";
  paint.textBaseline = "middle";
  paint.textAlign = "left";
  drawAxis();
  paint.save();
  paint.beginPath();
  paint.rect(label, 0, width - label, height);
  paint.clip();
  for (const row of data.rows) drawRow(row);
  paint.restore();
  for (const series of data.memory) drawMemory(series);
  for (const {text, y} of headings) {
    paint.fillStyle = colours.panel;
    paint.fillRect(0, y, width, GROUP - 3);
    paint.fillStyle = colours.ink;
    paint.font = "600 11px system-ui, sans-serif";
    paint.fillText(text, 6, y + GROUP / 2 - 1);
  }
  paint.font = "11px system-ui, sans-serif";
  paint.fillStyle = colours.soft;
  for (const lane of data.lanes) paint.fillText(lane.name, 6, lane.y + ROW / 2 - 1, label - 12);
  paint.save();
  paint.beginPath();
  paint.rect(label, 0, width - label, height);
  paint.clip();
  if (kept) outline(kept, colours.ink);
  if (hover) outline(hover, colours.accent);
  if (kept) drawArrowsOf(kept);
  if (hover) drawArrowsOf(hover);
  paint.restore();
}

function resize() {
  const scale = window.devicePixelRatio || 1;
  width = frame.clientWidth;
  label = width < 900 ? 96 : 130;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  draw();
}

// --- what is under the pointer --------------------------------------------------------------------------------------

function sliceAt(x, y) {
  if (x < label) return null;
  const reach = ((view[1] - view[0]) / (width - label)) * 2;  // two pixels: thin slices can be hit
  const time = toTime(x);
  for (let r = 0; r < data.rows.length; ++r) {
    const row = data.rows[r];
    if (y < row.y || y >= row.y + ROW - 1) continue;
    const i = firstAfter(row.end, time - reach);
    for (let k = i; k < row.start.length && row.start[k] <= time + reach; ++k)
      if (row.start[k] <= time && time <= row.end[k]) return [r, k];
    return i < row.start.length && row.start[i] <= time + reach ? [r, i] : null;
  }
  return null;
}

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function describe(slice, into) {
  const [r, i] = slice, row = data.rows[r];
  const pairs = [["time", timeText(row.end[i] - row.start[i])], ["start", axisText(row.start[i], 1)]];
  const from = arrowTo.get(r + ":" + i);
  if (from) pairs.push(["after its call", timeText(row.start[i] - data.rows[from[0]].start[from[1]])]);
  const queued = arrowsFrom.get(r + ":" + i);
  if (queued) pairs.push(["queued", queued.length === 1 ? data.strings[data.rows[queued[0][0]].n[queued[0][1]]] : `${queued.length} kernels and copies`]);
  for (const line of data.strings[row.i[i]].split("\n")) if (line) pairs.push(line.split("\t"));
  const list = document.createElement("dl");
  list.className = "pairs";
  for (const [key, value] of pairs) list.append(element("dt", key), element("dd", value));
  into.replaceChildren(element("b", data.strings[row.n[i]]), list);
  into.hidden = false;
}

function pointAt(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function look(event) {
  const [x, y] = pointAt(event);
  const found = sliceAt(x, y);
  const same = found && hover && found[0] === hover[0] && found[1] === hover[1];
  if (!same && (found || hover)) {
    hover = found;
    draw();
  }
  if (!found) {
    tip.hidden = true;
    return;
  }
  describe(found, tip);
  const left = Math.min(x + 14, width - tip.offsetWidth - 6);
  const below = y + 18, room = frame.scrollTop + frame.clientHeight;
  tip.style.left = Math.max(left, 4) + "px";
  tip.style.top = (below + tip.offsetHeight > room ? Math.max(y - tip.offsetHeight - 8, frame.scrollTop) : below) + "px";
}

// --- moving ---------------------------------------------------------------------------------------------------------

function show(from, to) {
  const length = Math.min(Math.max(to - from, SHORTEST), data.span * 1.1 + SHORTEST);
  const start = Math.min(Math.max(from, -0.05 * data.span), Math.max(data.span * 1.05 - length, -0.05 * data.span));
  view = [start, start + length];
  draw();
}

function zoom(factor, at = (view[0] + view[1]) / 2) {
  const length = Math.min(Math.max((view[1] - view[0]) * factor, SHORTEST), data.span * 1.1 + SHORTEST);
  const part = (at - view[0]) / (view[1] - view[0]);
  show(at - part * length, at - part * length + length);
}

function move(part) {
  const step = (view[1] - view[0]) * part;
  show(view[0] + step, view[1] + step);
}

const actions = {in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25), right: () => move(0.25),
                 fit: () => show(0, data.span)};
const keys = {w: "in", "+": "in", s: "out", "-": "out", a: "left", ArrowLeft: "left", d: "right", ArrowRight: "right", f: "fit"};

for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", actions[button.dataset.do]);
canvas.addEventListener("keydown", (event) => {
  const action = keys[event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  actions[action]();
});
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;  // the page scrolls
  event.preventDefault();
  zoom(Math.exp(event.deltaY / 300), toTime(pointAt(event)[0]));
}, {passive: false});

let drag = null;  // {x, view, moved}
canvas.addEventListener("pointerdown", (event) => {
  drag = {x: event.clientX, view: [...view], moved: false};
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) {
    look(event);
    return;
  }
  const by = event.clientX - drag.x;
  if (Math.abs(by) > 3) drag.moved = true;
  if (!drag.moved) return;
  canvas.classList.add("dragging");
  tip.hidden = true;
  const time = (by / (width - label)) * (drag.view[1] - drag.view[0]);
  show(drag.view[0] - time, drag.view[1] - time);
});
canvas.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) {
    kept = sliceAt(...pointAt(event));
    if (kept) describe(kept, details);
    else details.hidden = true;
    draw();
  }
  drag = null;
  canvas.classList.remove("dragging");
});
canvas.addEventListener("pointerleave", () => {
  hover = null;
  tip.hidden = true;
  draw();
});
canvas.addEventListener("dblclick", (event) => {
  const slice = sliceAt(...pointAt(event));
  if (!slice) return;
  const row = data.rows[slice[0]], length = row.end[slice[1]] - row.start[slice[1]];
  show(row.start[slice[1]] - length * 0.1, row.end[slice[1]] + length * 0.1);
});

document.getElementById("find").addEventListener("input", (event) => {
  const text = event.target.value.toLowerCase();
  const found = document.getElementById("found");
  matches = null;
  found.textContent = "";
  if (text) {
    matches = new Set();
    data.strings.forEach((s, i) => {
      if (s.toLowerCase().includes(text)) matches.add(i);
    });
    let count = 0;
    for (const row of data.rows) for (const name of row.n) count += matches.has(name);
    found.textContent = `${count} slices`;
  }
  draw();
});

// --- tables ---------------------------------------------------------------------------------------------------------

/// The slices that a row is about: those with its name, or with its kind and name ("launch add_kernel").
function slicesOf(row) {
  const name = row.cells[0].textContent, kind = row.cells[1] ? row.cells[1].textContent + " " : "";
  for (const text of [kind + name, name]) {
    const index = data.strings.indexOf(text);
    if (index < 0 || !text) continue;
    const found = [];
    data.rows.forEach((r, at) => r.n.forEach((n, i) => n === index && found.push([at, i])));
    if (found.length) return found.sort((a, b) => data.rows[a[0]].start[a[1]] - data.rows[b[0]].start[b[1]]);
  }
  return [];
}

const lengthOf = ([r, i]) => data.rows[r].end[i] - data.rows[r].start[i];

function showSlice([r, i]) {
  kept = [r, i];
  describe(kept, details);
  show(data.rows[r].start[i] - lengthOf(kept), data.rows[r].end[i] + lengthOf(kept));
  frame.scrollIntoView({block: "nearest"});
}

/// A bar per run in the order of time, at most as many as there is room for: then the longest of each few.
function barsOf(lengths) {
  const MOST = 110, HIGH = 60;
  const each = Math.ceil(lengths.length / MOST), count = Math.ceil(lengths.length / each), longest = Math.max(...minMax(lengths), 1);
  let path = "";
  for (let i = 0; i < count; ++i) {
    const high = (minMax(lengths.slice(i * each, (i + 1) * each))[1] / longest) * HIGH;
    path += `M${i * 3} ${HIGH}h2v${-Math.max(high, 1)}h-2z`;
  }
  const holder = document.createElement("div");
  holder.innerHTML = `<svg class="bars" viewBox="0 0 ${Math.max(count, 24) * 3} ${HIGH}" preserveAspectRatio="none" role="img"
    aria-label="the times of ${lengths.length} runs in their order"><path d="${path}" fill="currentColor"/></svg>`;
  return holder.firstChild;
}

/// What a row opens to: its figures with their heads, and the runs that they sum up.
function aboutRow(row, heads) {
  const about = element("div", "");
  about.className = "about";
  const figures = element("dl", "");
  figures.className = "pairs";
  heads.forEach((head, i) => {
    const cell = row.cells[i], unknown = cell.classList.contains("unknown-cell");
    if (!cell.textContent) return;
    figures.append(element("dt", head.textContent.trim()), element("dd", unknown ? `– (${cell.title || "none"})` : cell.textContent));
  });
  about.append(figures);
  const found = slicesOf(row);
  if (!found.length) return about;
  const lengths = found.map(lengthOf), sorted = [...lengths].sort((a, b) => a - b);
  const runs = element("div", "");
  runs.append(element("h3", found.length === 1 ? "1 run" : `${found.length} runs in their order`));
  if (found.length > 1) runs.append(barsOf(lengths));
  const times = element("dl", "");
  times.className = "pairs";
  const at = (share) => sorted[Math.round((sorted.length - 1) * share)];
  for (const [name, share] of [["shortest", 0], ["median", 0.5], ["longest", 1]])
    if (found.length > 1 || share === 1) times.append(element("dt", found.length > 1 ? name : "time"), element("dd", timeText(at(share))));
  runs.append(times);
  const list = element("ul", "");
  list.className = "slices";
  const longest = found[lengths.indexOf(sorted[sorted.length - 1])];
  for (const [text, slice] of [["show the first in the timeline", found[0]], ["show the longest", longest]]) {
    if (text === "show the longest" && slice === found[0]) continue;
    const button = element("button", found.length === 1 ? "show it in the timeline" : text);
    button.type = "button";
    button.addEventListener("click", () => showSlice(slice));
    const item = element("li", "");
    item.append(button);
    list.append(item);
  }
  runs.append(list);
  about.append(runs);
  return about;
}

const openRow = (row) => (row.nextElementSibling?.classList.contains("opened") ? row.nextElementSibling : null);

function toggleRow(row, heads) {
  const opened = openRow(row);
  row.querySelector("button.more").setAttribute("aria-expanded", String(!opened));
  if (opened) {
    opened.remove();
    return;
  }
  const made = document.createElement("tr");
  made.className = "opened";
  const cell = made.insertCell();
  cell.colSpan = heads.length;
  cell.append(aboutRow(row, heads));
  row.after(made);
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], original = [...body.rows];

  // From the largest, from the smallest, as they were. What a row opened stays below it.
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const next = {descending: "ascending", ascending: null}[head.getAttribute("aria-sort")];
      const order = next === undefined ? "descending" : next;
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      if (order) head.setAttribute("aria-sort", order);
      const key = (row) => {
        const cell = row.cells[column];
        return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
      };
      const compare = (a, b) => {
        const x = key(a), y = key(b);
        if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;  // what is not known comes last
        const by = typeof x === "number" ? x - y : x.localeCompare(y);
        return order === "descending" ? -by : by;
      };
      const rows = order ? [...original].sort(compare) : original;
      body.append(...rows.flatMap((row) => [row, openRow(row)].filter(Boolean)));
    });
  });

  for (const row of original) {
    row.querySelector("button.more").addEventListener("click", () => toggleRow(row, heads));
    row.addEventListener("dblclick", (event) => event.target.closest("button") || toggleRow(row, heads));
  }
  body.addEventListener("keydown", (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (!step || !event.target.matches("button.more")) return;
    const buttons = [...body.querySelectorAll("button.more")];
    const to = buttons[buttons.indexOf(event.target) + step];
    if (!to) return;
    event.preventDefault();
    to.focus();
  });
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => {
  readColours();
  draw();
});
readColours();
new ResizeObserver(resize).observe(frame);
resize();
