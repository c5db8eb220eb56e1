// Connects the figures of a pair with the controls. `pages.py` gives Bokeh's models by name, and the data as `pair`.

const FLAGGED = "#d0d0d0";
const sides = [1, 2];
const n = pair.columns.row.length;
const height = Math.max(...pair.photos.map((photo) => photo.height));
// Both photographs are drawn at one height.
const scales = pair.photos.map((photo) => height / photo.height);
const width = Math.max(...pair.photos.map((photo, i) => photo.width * scales[i]));
const boxes = sides.map((side) => document.getElementById(`view${side}`));
const evenly = sorted_by((i) => pair.columns.order[i]);
const rising = sorted_by((i) => pair.columns.probability[i]);
const columns = { ...pair.columns };
columns.residual = columns.residual.map((value) => value ?? Infinity);
for (const side of sides) {
  for (const axis of ["x", "y"]) columns[axis + side] = columns[axis + side].map((value) => to_figure(value, side));
}
let passing = []; // which matches the controls let through
let looked_at = -1;

function sorted_by(key) {
  return Array.from({ length: n }, (_, i) => i).sort((i, j) => key(i) - key(j));
}

// Returns a coordinate in px as the figures have it: 0 is the outer corner of the first pixel.
function to_figure(value, side) {
  return (value - pair.photos[side - 1].corner) * scales[side - 1];
}

function in_pixels(i, side) {
  return [pair.columns[`x${side}`][i], pair.columns[`y${side}`][i]];
}

// ---- the data

function fill() {
  const title = pair.photos.map((photo) => photo.name).join(" and ");
  document.title = title;
  document.querySelector("h1").textContent = title;
  document.getElementById("headline").textContent = `${pair.headline} · evidence ${Math.round(pair.evidence)}`;
  document.getElementById("views").style.setProperty("--shape", `${width} / ${height}`);
  [photo1, photo2].forEach((photo, i) => {
    const shown = pair.photos[i];
    if (shown.address === null) return;
    photo.data = { address: [shown.address], width: [shown.width * scales[i]], height: [height] };
  });
  const n_kept = columns.kept.filter(Boolean).length;
  kinds.labels = [`kept ${n_kept}`, `flagged ${n - n_kept}`];
  const texts = pair.parts.map((part) => part.text);
  part_names.data = { text: texts };
  parts.labels = texts;
  parts.active = texts.map((_, i) => i);
  parts.stylesheets = [pair.parts.map(({ colour }, i) => `label:nth-of-type(${i + 1}) input { accent-color: ${colour} }`).join("\n")];
  by_part.palette = [FLAGGED, ...pair.parts.map((part) => part.colour)];
  by_part.high = pair.parts.length - 0.5;
  matches.data = columns;
  show_all();
}

function show_all() {
  x_range.setv({ start: 0, end: width });
  y_range.setv({ start: height, end: 0 });
}

// ---- which matches are shown

function passes(i) {
  const [least, most] = probabilities.value, [near, far] = residuals.value;
  const residual = Math.log10(Math.max(columns.residual[i], 1e-9));
  const is_of_a_kind = kinds.active.includes(columns.kept[i] ? 0 : 1);
  const is_of_a_part = columns.part[i] < 0 || parts.active.includes(columns.part[i]);
  const is_near = (near <= residuals.start || residual >= near) && (far >= residuals.end || residual <= far);
  return is_of_a_kind && is_of_a_part && is_near && columns.probability[i] >= least && columns.probability[i] <= most;
}

function filter() {
  passing = columns.row.map((_, i) => passes(i));
  const indices = columns.row.map((_, i) => i).filter((i) => passing[i]);
  shown_kept.indices = indices.filter((i) => columns.kept[i]);
  shown_flagged.indices = indices.filter((i) => !columns.kept[i]);
  document.getElementById("shown").textContent = `${indices.length} of ${n} matches shown`;
  draw_lines();
}

// ---- lines, which begin in one figure and end in the other

// Returns how far the second figure lies from the first, in the units of the ranges.
function offset() {
  const [first, second] = boxes.map((box) => box.getBoundingClientRect());
  return {
    x: ((second.left - first.left) / first.width) * (x_range.end - x_range.start),
    y: ((second.top - first.top) / first.height) * (y_range.start - y_range.end),
  };
}

function is_in_view(i) {
  return sides.some((side) => {
    const x = columns[`x${side}`][i], y = columns[`y${side}`][i];
    return x >= x_range.start && x <= x_range.end && y >= y_range.end && y <= y_range.start;
  });
}

// Returns the columns of some matches, with the other ends of their lines as each figure has them.
function rows_of(indices) {
  const { x, y } = offset();
  const taken = Object.fromEntries(Object.keys(columns).map((name) => [name, indices.map((i) => columns[name][i])]));
  taken.other_x1 = indices.map((i) => columns.x2[i] + x);
  taken.other_y1 = indices.map((i) => columns.y2[i] + y);
  taken.other_x2 = indices.map((i) => columns.x1[i] - x);
  taken.other_y2 = indices.map((i) => columns.y1[i] - y);
  return taken;
}

function draw_lines() {
  const in_view = evenly.filter((i) => passing[i] && is_in_view(i));
  lines.selected.indices = [];
  lines.data = rows_of(in_view.slice(0, most_lines.value));
  const size = Math.min(10, Math.max(3.2, 120 / Math.sqrt(in_view.length + 1)));
  for (const { glyph } of dots.concat(crosses)) glyph.size = size;
  mark();
}

let is_waiting = false;
function draw_lines_soon() {
  if (is_waiting) return;
  is_waiting = true;
  requestAnimationFrame(() => {
    is_waiting = false;
    draw_lines();
  });
}

// ---- colours

function paint() {
  const field = ["part", "probability", "residual"][colour.active];
  const transform = { part: by_part, probability: by_probability, residual: by_residual }[field];
  for (const { glyph } of crosses.concat(segments)) glyph.line_color = { field, transform };
  for (const { glyph } of dots) glyph.fill_color = { field, transform };
  const scale = document.getElementById("scale");
  scale.style.display = field == "part" ? "none" : "";
  const [low, bar, high] = scale.children, unit = field == "residual" ? " px" : "";
  low.textContent = transform.low + unit;
  high.textContent = transform.high + unit;
  bar.style.background = `linear-gradient(to right, ${transform.palette.join(", ")})`;
}

// ---- the match that is looked at

function look_at(i) {
  looked_at = i;
  document.getElementById("match").style.visibility = i < 0 ? "hidden" : "visible";
  if (i >= 0) {
    show_patches(i);
    show_facts(i);
  }
  mark();
}

// Draws it over the others; its line depends on the view.
function mark() {
  chosen.data = rows_of(looked_at < 0 ? [] : [looked_at]);
}

// Draws the match under the pointer over the others.
function point_at(table) {
  hovered.data = rows_of(table.inspected.indices.slice(0, 1).map((item) => columns.row.indexOf(table.data.row[item])));
}

function show_patches(i) {
  [patch1, patch2].forEach(({ x_range, y_range }, item) => {
    const half = halves[patch_size.active] * scales[item];
    const x = columns[`x${item + 1}`][i], y = columns[`y${item + 1}`][i];
    x_range.setv({ start: x - half, end: x + half });
    y_range.setv({ start: y + half, end: y - half });
  });
  expected.data = expectation(i);
}

function show_facts(i) {
  const structure = columns.structure[i];
  const facts = {
    match: columns.row[i],
    mask: columns.kept[i] ? "kept" : "flagged",
    [probability]: columns.probability[i].toFixed(3),
    residual: Number.isFinite(columns.residual[i]) ? `${columns.residual[i].toPrecision(3)} px` : "unknown",
    [columns.kept[i] ? "structure" : "nearest structure"]: structure < 0 ? "none" : `${structure}, ${pair.structures[structure].kind}`,
    "drawn as": columns.part[i] < 0 ? "flagged" : pair.parts[columns.part[i]].text,
    positions: sides.map((side) => `(${in_pixels(i, side).map((value) => value.toFixed(1)).join(", ")})`).join(" – "),
  };
  document.querySelector("#facts dl").replaceChildren(
    ...Object.entries(facts).flatMap((entry) => ["dt", "dd"].map((tag, item) => {
      const element = document.createElement(tag);
      element.textContent = entry[item];
      return element;
    })),
  );
}

// Goes on to a match that is shown, of the next higher or the next lower probability.
function step(by) {
  const place = rising.indexOf(looked_at);
  for (let k = 1; k <= n; k++) {
    const i = rising[(((place + k * by) % n) + n) % n];
    if (passing[i]) return look_at(i);
  }
}

// ---- where a structure expects a match

// Returns a segment for each figure: from the match to where a homography maps its other end, or along its epipolar line.
function expectation(i) {
  const ends = Object.fromEntries(Object.keys(expected.data).map((name) => [name, []]));
  const structure = pair.structures[columns.structure[i]];
  const segment = { homography: residual_vector, fundamental: epipolar_line }[structure?.kind];
  if (segment === undefined) return ends;
  for (const side of sides) {
    const [here, there] = [in_pixels(i, side), in_pixels(i, 3 - side)];
    segment(structure.matrix, side, here, there).forEach((at, item) => {
      const end = ["from", "to"][item];
      ["x", "y"].forEach((axis, k) => ends[`${end}_${axis}${side}`].push(to_figure(at[k], side)));
    });
  }
  return ends;
}

function residual_vector(H, side, here, there) {
  const [x, y, z] = times(side == 2 ? H : adjugate(H), there);
  return [here, [x / z, y / z]];
}

function epipolar_line(F, side, here, there) {
  const [a, b, c] = times(side == 2 ? F : transposed(F), there);
  const squared = a * a + b * b, off = (a * here[0] + b * here[1] + c) / squared;
  const foot = [here[0] - a * off, here[1] - b * off], far = (10 * width) / Math.sqrt(squared);
  return [-far, far].map((step) => [foot[0] + step * b, foot[1] - step * a]);
}

function times(M, [x, y]) {
  return [0, 3, 6].map((row) => M[row] * x + M[row + 1] * y + M[row + 2]);
}

function transposed([a, b, c, d, e, f, g, h, i]) {
  return [a, d, g, b, e, h, c, f, i];
}

// The inverse up to its scale.
function adjugate([a, b, c, d, e, f, g, h, i]) {
  return [
    e * i - f * h, c * h - b * i, b * f - c * e,
    f * g - d * i, a * i - c * g, c * d - a * f,
    d * h - e * g, b * g - a * h, a * e - b * d,
  ];
}

// ---- connections

function on(model, names, handle) {
  for (const name of names) model.properties[name].change.connect(handle);
}

fill();
on(kinds, ["active"], filter);
on(parts, ["active"], filter);
on(probabilities, ["value"], filter);
on(residuals, ["value"], filter);
on(most_lines, ["value"], draw_lines);
on(x_range, ["start", "end"], draw_lines_soon);
on(y_range, ["start", "end"], draw_lines_soon);
on(colour, ["active"], paint);
on(brightness, ["value"], () => backdrops.forEach(({ glyph }) => (glyph.global_alpha = brightness.value)));
on(patch_size, ["active"], () => show_patches(looked_at));
on(matches.selected, ["indices"], () => matches.selected.indices.slice(0, 1).forEach(look_at));
on(lines.selected, ["indices"], () => {
  for (const item of lines.selected.indices.slice(0, 1)) look_at(columns.row.indexOf(lines.data.row[item]));
});
for (const table of [matches, lines]) table.inspect.connect(() => point_at(table));
previous.on_event("button_click", () => step(-1));
next.on_event("button_click", () => step(1));
reset.on_event("button_click", show_all);
new ResizeObserver(draw_lines_soon).observe(boxes[0]);
paint();
filter();
look_at(rising.find((i) => columns.kept[i]) ?? rising[0] ?? -1);
document.body.dataset.ready = "yes"; // for tests
