// Connects the figures of a pair with the controls. `pages.py` gives Bokeh's models by name, and the data as `pair`.

const FLAGGED = "#d0d0d0";
const sides = [1, 2];
const n = pair.columns.row.length;
const height = Math.max(...pair.photos.map((photo) => photo.height));
// Both photographs are drawn at one height.
const scales = pair.photos.map((photo) => height / photo.height);
const width = Math.max(...pair.photos.map((photo, i) => photo.width * scales[i]));
const boxes = sides.map((side) => document.getElementById(`view${side}`));
const views = [figure1, figure2];
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

// Returns a coordinate in px in the units of the figures: 0 is the outer corner of the first pixel.
function to_figure(value, side) {
  return (value - pair.photos[side - 1].corner) * scales[side - 1];
}

function in_pixels(i, side) {
  return [pair.columns[`x${side}`][i], pair.columns[`y${side}`][i]];
}

// ---- the data

function fill() {
  document.title = pair.title;
  document.querySelector("h1").textContent = pair.title;
  document.getElementById("headline").textContent = pair.headline;
  document.getElementById("structures").innerHTML = pair.table;
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
  const indices = evenly.filter((i) => passing[i]);
  shown_kept.indices = indices.filter((i) => columns.kept[i]);
  shown_flagged.indices = indices.filter((i) => !columns.kept[i]);
  document.getElementById("shown").textContent = `${indices.length} of ${n} matches shown`;
  draw_lines();
}

// ---- what each figure shows: one is moved by the user, the other follows

let leader = 0; // the side that the user moved last
let is_following = false;

// Sets the ranges of a figure by its centre and its width.
function show(side, [x, y], across) {
  const down = (across * height) / width, { x_range, y_range } = views[side - 1];
  is_following = true;
  x_range.setv({ start: x - across / 2, end: x + across / 2 });
  y_range.setv({ start: y + down / 2, end: y - down / 2 });
  is_following = false;
}

function show_all() {
  for (const side of sides) show(side, [width / 2, height / 2], width);
}

function is_in_view(i, side) {
  const { x_range, y_range } = views[side - 1], x = columns[`x${side}`][i], y = columns[`y${side}`][i];
  return x >= x_range.start && x <= x_range.end && y >= y_range.end && y <= y_range.start;
}

function median(values) {
  return values.sort((a, b) => a - b)[values.length >> 1];
}

// Moves the other figure to the partners of the matches in view: of those nearest to its middle, at the scale of all in view.
function follow(side) {
  const { x_range, y_range } = views[side - 1], other = 3 - side;
  const middle = { x: (x_range.start + x_range.end) / 2, y: (y_range.start + y_range.end) / 2 };
  const away = columns.row.map((_, i) => Math.hypot(columns[`x${side}`][i] - middle.x, columns[`y${side}`][i] - middle.y));
  const kept = evenly.filter((i) => columns.kept[i] && passing[i]).sort((i, j) => away[i] - away[j]);
  if (kept.length == 0) return;
  const seen = kept.filter((i) => is_in_view(i, side));
  const ratio = seen.length < 4 ? 1 : Math.min(4, Math.max(0.25, spread(seen, other) / Math.max(spread(seen, side), 1e-9)));
  const near = kept.slice(0, Math.max(1, seen.length >> 2));
  const centre = ["x", "y"].map((axis) => {
    return median(near.map((i) => columns[axis + other][i] - ratio * (columns[axis + side][i] - middle[axis])));
  });
  show(other, centre, ratio * (x_range.end - x_range.start));
}

// Returns how far matches lie apart in a figure.
function spread(indices, side) {
  const [x, y] = ["x", "y"].map((axis) => indices.map((i) => columns[axis + side][i]));
  return [x, y].reduce((sum, values) => {
    const middle = median([...values]);
    return sum + median(values.map((value) => Math.abs(value - middle)));
  }, 0);
}

let is_waiting = false;
function redraw_soon(side) {
  if (is_following) return;
  leader = side;
  if (is_waiting) return;
  is_waiting = true;
  requestAnimationFrame(() => {
    is_waiting = false;
    if (leader) follow(leader);
    draw_lines();
  });
}

// ---- lines, which begin in one figure and end in the other

// Returns functions that turn coordinates of the other figure into those of a figure, on the same place of the screen.
function from_other(side) {
  const [box, other_box] = [boxes[side - 1], boxes[2 - side]].map((element) => element.getBoundingClientRect());
  const [view, other] = [views[side - 1], views[2 - side]];
  const along = (range, start, length, other_range, other_start, other_length) => (value) => {
    const place = other_start + ((value - other_range[0]) / (other_range[1] - other_range[0])) * other_length;
    return range[0] + ((place - start) / length) * (range[1] - range[0]);
  };
  const [across, other_across] = [view, other].map(({ x_range }) => [x_range.start, x_range.end]);
  const [down, other_down] = [view, other].map(({ y_range }) => [y_range.end, y_range.start]);
  return {
    x: along(across, box.left, box.width, other_across, other_box.left, other_box.width),
    y: along(down, box.top, box.height, other_down, other_box.top, other_box.height),
  };
}

// Returns the columns of some matches, with the other ends of their lines in the units of each figure.
function rows_of(indices) {
  const taken = Object.fromEntries(Object.keys(columns).map((name) => [name, indices.map((i) => columns[name][i])]));
  for (const side of sides) {
    const place = from_other(side);
    for (const axis of ["x", "y"]) taken[`other_${axis}${side}`] = taken[axis + (3 - side)].map(place[axis]);
  }
  return taken;
}

function draw_lines() {
  const in_view = evenly.filter((i) => passing[i] && sides.some((side) => is_in_view(i, side)));
  lines.selected.indices = [];
  lines.data = rows_of(in_view.slice(0, most_lines.value));
  const size = Math.min(10, Math.max(3.2, 120 / Math.sqrt(in_view.length + 1)));
  for (const { glyph } of dots.concat(crosses)) glyph.size = size;
  mark();
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

// Draws it over the others; its line depends on the views.
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
  const nearest = pair.structures[columns.structure[i]];
  const facts = {
    match: columns.row[i],
    mask: columns.kept[i] ? "kept" : "flagged",
    [probability]: columns.probability[i].toFixed(3),
    residual: Number.isFinite(columns.residual[i]) ? `${columns.residual[i].toPrecision(3)} px` : "unknown",
    [columns.kept[i] ? "structure" : "nearest structure"]: nearest ? `${nearest.name}, ${nearest.words}` : "none",
    positions: `${sides.map((side) => `(${in_pixels(i, side).map((value) => value.toFixed(1)).join(", ")})`).join(" – ")} px`,
  };
  document.querySelector("#facts dl").replaceChildren(
    ...Object.entries(facts).flatMap((entry) => ["dt", "dd"].map((tag, item) => {
      const element = document.createElement(tag);
      element.textContent = entry[item];
      return element;
    })),
  );
}

// Continues with a match that is shown, of the next higher or the next lower probability.
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
  const [a, b, c] = times(side == 2 ? F : [0, 3, 6, 1, 4, 7, 2, 5, 8].map((entry) => F[entry]), there);
  const squared = a * a + b * b, off = (a * here[0] + b * here[1] + c) / squared;
  const foot = [here[0] - a * off, here[1] - b * off], far = (10 * width) / Math.sqrt(squared);
  return [-far, far].map((step) => [foot[0] + step * b, foot[1] - step * a]);
}

function times(M, [x, y]) {
  return [0, 3, 6].map((row) => M[row] * x + M[row + 1] * y + M[row + 2]);
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
for (const control of [kinds, parts]) on(control, ["active"], filter);
for (const control of [probabilities, residuals]) on(control, ["value"], filter);
on(most_lines, ["value"], draw_lines);
for (const side of sides) {
  for (const range of [views[side - 1].x_range, views[side - 1].y_range]) on(range, ["start", "end"], () => redraw_soon(side));
}
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
reset.on_event("button_click", () => {
  show_all();
  draw_lines();
});
new ResizeObserver(() => redraw_soon(0)).observe(boxes[0]);
paint();
filter();
look_at(rising.find((i) => columns.kept[i]) ?? rising[0] ?? -1);
document.body.dataset.ready = "yes"; // for tests
