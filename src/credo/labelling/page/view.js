// What is seen: functions that fill parts of the page from values. Text is only ever set as text.

import { curve } from "./curve.js";

export const $ = (id) => document.getElementById(id);

const KINDS = { none: "none of these", skip: "skipped", flag: "flagged" };
const SHORT = 60;
// Pictures smaller than this are enlarged, with their pixels as squares.
const SMALL = 200;
// More classes than this are looked for by their names.
const MANY = 12;

export const percent = (share) => `${Math.round(100 * share)}%`;
export const sentence = (words) => `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
export const spoken = (answer) => answer.label ?? KINDS[answer.kind];

export function element(name, properties = {}, ...inside) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...inside);
  return made;
}

// With the pool in its address, since another one may have items of the same names.
export const picture = (item) => `image?${new URLSearchParams({ item, pool: document.body.dataset.pool })}`;

// -- the question ------------------------------------------------------------------------------------------

export function showItem(card) {
  $("item").className = card.kind;
  $("item").replaceChildren(drawn(card));
}

function drawn(card) {
  if (card.kind === "image") {
    const image = element("img", { alt: `Image ${card.item}`, src: picture(card.item) });
    image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < SMALL));
    return image;
  }
  if (card.kind === "text") return element("blockquote", { textContent: card.text, dir: "auto" });
  const pairs = card.fields.map(([name, value]) =>
    element("div", {}, element("dt", { textContent: name, dir: "auto" }), element("dd", { textContent: value, dir: "auto" })));
  return element("dl", {}, ...pairs);
}

// A button for each class. They are made once, so that neither focus nor place is lost from card to card.
export function makeClasses(classes, keys, choose) {
  const buttons = classes.map((name) => {
    const own = Object.keys(keys).filter((key) => keys[key] === name);
    const caps = own.map((key) => element("kbd", { textContent: key }));
    const button = element("button", { type: "button" }, element("span", { className: "keys" }, ...caps),
      element("bdi", { className: "name", textContent: name }),
      element("span", { className: "bar" }, element("span", { className: "mean" }), element("span", { className: "whisker" })),
      element("span", { className: "share" }));
    button.setAttribute("aria-keyshortcuts", own.join(" "));
    button.addEventListener("click", () => choose(name));
    return button;
  });
  $("classes").classList.toggle("many", classes.length > 5);
  $("classes").replaceChildren(...buttons);
  $("find").hidden = classes.length <= MANY;
}

// Classes whose names hold what is looked for; the first of them.
export function find(words) {
  const wanted = words.trim().toLowerCase();
  const buttons = [...$("classes").children];
  for (const button of buttons) button.hidden = !button.querySelector(".name").textContent.toLowerCase().includes(wanted);
  return wanted && buttons.find((button) => !button.hidden);
}

export function showBelief(classes, belief, chosen) {
  const likeliest = belief && Math.max(...classes.map((name) => belief[name].mean));
  [...$("classes").children].forEach((button, number) => {
    const own = belief?.[classes[number]];
    button.classList.toggle("likeliest", Boolean(own) && own.mean === likeliest);
    button.ariaPressed = chosen === undefined ? null : String(chosen === classes[number]);
    const [bar, share] = [button.querySelector(".bar"), button.querySelector(".share")];
    bar.classList.toggle("empty", !own);
    share.textContent = own ? percent(own.mean) : "";
    const words = own ? `${percent(own.mean)}, between ${percent(own.low)} and ${percent(own.high)}` : "no belief shown";
    button.title = own ? words : "";
    button.ariaLabel = `${classes[number]}: ${words}`;
    bar.style.setProperty("--mean", own?.mean ?? 0);
    bar.style.setProperty("--low", own?.low ?? 0);
    bar.style.setProperty("--high", own?.high ?? 0);
  });
}

// -- the last ten ------------------------------------------------------------------------------------------

export function showRecent(entries, edit) {
  const rows = entries.map((entry) => {
    const state = { saved: "saved", saving: "saving…", refused: "not taken", waiting: "kept here" }[entry.state];
    const button = element("button", { type: "button", className: "quiet", title: "Change this answer" },
      thumbnail(entry.card), element("bdi", { className: "label", textContent: spoken(entry) }),
      element("span", { className: `state ${entry.state}`, textContent: state }));
    button.ariaLabel = `${summary(entry.card)}: ${spoken(entry)}, ${state}. Change it`;
    button.addEventListener("click", () => edit(entry));
    return element("li", {}, button);
  });
  const none = element("li", { className: "soft", textContent: "What you answer stands here, and can be changed." });
  $("recent").replaceChildren(...(rows.length ? rows : [none]));
}

function thumbnail(card) {
  if (card.kind === "image") return element("img", { alt: "", src: picture(card.item), loading: "lazy" });
  return element("bdi", { className: "excerpt", textContent: summary(card) });
}

export function summary(card) {
  const all = card.kind === "text" ? card.text : card.fields.map(([, value]) => value).join(", ");
  if (!all) return card.item;
  return all.length > SHORT ? `${all.slice(0, SHORT)}…` : all;
}

// -- progress ----------------------------------------------------------------------------------------------

export function showProgress(progress) {
  const { num_labels: labels, num_items: items, curve: points, disagreements } = progress;
  $("count").textContent = `${labels.toLocaleString("en")} of ${items.toLocaleString("en")} labelled`;
  const early = element("p", { className: "soft", textContent: "The curve begins with the first items that are drawn by chance." });
  $("curve").replaceChildren(points.length ? curve(points) : early);
  $("needed").replaceChildren(element("strong", { textContent: "Still needed? " }), sentence(progress.still_needed));
  $("learning").textContent = stateOf(progress);
  $("learning").classList.toggle("busy", progress.learning);
  count($("by-class"), progress.by_class);
  count($("by-labeller"), progress.by_labeller);
  const disputed = disagreements.length;
  $("disputed").textContent = disputed ? `${disputed} ${disputed === 1 ? "item is" : "items are"} in dispute.` : "";
}

function stateOf({ learning, problem, round }) {
  if (problem) return sentence(problem);
  if (learning) return "Learning…";
  if (!round) return "Waits for the first labels.";
  return round === 1 ? "Learned once." : `Learned ${round} times.`;
}

function count(list, counts) {
  const most = Math.max(1, ...Object.values(counts));
  const rows = Object.entries(counts).map(([name, number]) => {
    const row = element("div", {}, element("dt", { textContent: name, dir: "auto" }),
      element("dd", { textContent: number.toLocaleString("en") }));
    row.style.setProperty("--share", number / most);
    return row;
  });
  list.replaceChildren(...rows);
}
