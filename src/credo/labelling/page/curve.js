// The learning curve: accuracy over the number of labels, with the band where it lies by nine in ten.

const WIDTH = 320, HEIGHT = 168;
const LEFT = 36, RIGHT = 10, TOP = 14, BOTTOM = 24;

export function curve(points) {
  const last = points.at(-1);
  const bottom = Math.floor(Math.min(...points.map((point) => point.low), 0.9) * 10) / 10;
  const x = (labels) => LEFT + (labels / last.num_labels) * (WIDTH - LEFT - RIGHT);
  const y = (share) => TOP + ((1 - share) / (1 - bottom)) * (HEIGHT - TOP - BOTTOM);
  const at = (share) => (point) => `${x(point.num_labels).toFixed(1)},${y(point[share]).toFixed(1)}`;

  const percent = (share) => `${Math.round(100 * share)}%`;
  const summary = `Accuracy by number of labels: ${percent(last.accuracy)} after ${last.num_labels}, `
    + `between ${percent(last.low)} and ${percent(last.high)} by nine in ten`;
  const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": summary });
  for (const share of [bottom, (1 + bottom) / 2, 1]) {
    drawing.append(
      shape("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share) }),
      words(percent(share), { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }),
    );
  }
  drawing.append(
    words("0", { x: LEFT, y: HEIGHT - 6 }),
    words(`${last.num_labels} labels`, { x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }),
    shape("polygon", { class: "band", points: [...points.map(at("high")), ...points.map(at("low")).reverse()].join(" ") }),
    shape("polyline", { class: "line", points: points.map(at("accuracy")).join(" ") }),
    shape("circle", { class: "dot", cx: x(last.num_labels), cy: y(last.accuracy), r: 3.5 }),
  );
  return drawing;
}

function shape(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function words(text, attributes) {
  const made = shape("text", attributes);
  made.textContent = text;
  return made;
}
