// Connects the table of pairs with the heat map. `pages.py` gives Bokeh's models by name; `pairs.js` has filled `rows`.

// Of a pair that was done again the last row counts.
const last = [...new Map(rows.map((row) => [row.id, row])).values()];
const images = [...new Set(last.flatMap((row) => [row.image1, row.image2]))].sort();
const places = new Map(images.map((name, place) => [name, place]));
const MOST_NAMES = 60; // more would not be legible
// Columns that a phone is wide enough for; the page of a pair has all its numbers.
const NARROW = ["image1", "kept", "share", "evidence"];
const phone = matchMedia("(max-width: 760px)");
last.sort((a, b) => places.get(a.image1) - places.get(b.image1) || places.get(a.image2) - places.get(b.image2));

function columns_of(taken, more = {}) {
  const names = Object.keys(pairs.data);
  return { ...Object.fromEntries(names.map((name) => [name, taken.map((row) => row[name])])), ...more };
}

function fill() {
  const most = Math.max(1, ...last.map((row) => row.kept));
  least_kept.end = most;
  by_kept.high = Math.max(10, most);
  names.data = { text: images };
  ticker.ticks = images.length <= MOST_NAMES ? images.map((_, place) => place) : [];
  const end = images.length - 0.5;
  map.x_range.setv({ start: -0.5, end });
  map.y_range.setv({ start: end, end: -0.5 });
  pairs.data = columns_of(last);
  const kept = last.reduce((sum, row) => sum + row.kept, 0);
  document.getElementById("headline").textContent = `${last.length} pairs of ${images.length} images, ${kept} matches kept`;
}

function passes(row) {
  const wanted = words.value_input.toLowerCase();
  const is_named = [row.image1, row.image2, row.reason].some((text) => text.toLowerCase().includes(wanted));
  const is_in_state = [true, row.reason === "", row.reason !== ""][states.active];
  return is_named && is_in_state && row.kept >= least_kept.value && row.evidence >= least_evidence.value;
}

function filter() {
  shown.indices = last.map((_, i) => i).filter((i) => passes(last[i]));
  const taken = shown.indices.map((i) => last[i]);
  document.getElementById("shown").textContent = `${taken.length} of ${last.length} pairs shown`;
  const [x, y] = [taken.map((row) => places.get(row.image1)), taken.map((row) => places.get(row.image2))];
  cells.selected.indices = [];
  cells.data = columns_of([...taken, ...taken], { x: [...x, ...y], y: [...y, ...x] });
}

function choose_columns() {
  for (const column of table.columns) column.visible = !phone.matches || NARROW.includes(column.field);
}

function paint() {
  const field = ["kept", "share", "evidence"][colour.active];
  const transform = { kept: by_kept, share: by_share, evidence: by_evidence }[field];
  squares.glyph.fill_color = { field, transform };
  bar.color_mapper = transform;
}

function on(model, property, handle) {
  model.properties[property].change.connect(handle);
}

choose_columns();
fill();
filter();
paint();
phone.addEventListener("change", choose_columns);
on(words, "value_input", filter);
on(least_kept, "value", filter);
on(least_evidence, "value", filter);
on(states, "active", filter);
on(colour, "active", paint);
on(cells.selected, "indices", () => {
  for (const i of cells.selected.indices.slice(0, 1)) location.href = `pair.html#${cells.data.id[i]}`;
});
document.body.dataset.ready = "yes"; // for tests
