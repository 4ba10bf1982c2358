// The page: a card is answered, the next is there already, and the answer is on its way.

import { Outbox, Refused } from "./outbox.js";
import { read, write } from "./storage.js";
import {
  $, element, find, makeClasses, picture, sentence, showBelief, showItem, showProgress, showRecent, spoken, summary,
} from "./view.js";

// Cards that are there before they are asked for.
const AHEAD = 4;
const LAST = 10;
// Milliseconds until a request is given up, and until it is tried again.
const PATIENCE = 15_000;
const AGAIN = 1500;

const state = { session: null, labeller: "", card: null, queue: [], recent: [], edited: null, round: -1 };
// Items that were answered since the server was last asked for cards: it may not have known.
let answered = new Set();
let isFilling = false;
let isStale = false;
let outbox = null;
let events = null;

// -- talking to the server ---------------------------------------------------------------------------------

async function ask(path, content) {
  const options = { signal: AbortSignal.timeout(PATIENCE) };
  if (content) Object.assign(options, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(content) });
  const response = await fetch(path, options);
  if (!response.ok) throw new Refused(response.status, (await response.text()).trim());
  return response.json();
}

const post = ({ labeller, item, kind, label, token }) => ask("answers", { labeller, item, kind, label, token, window: tab() });

function told(entry, outcome, error) {
  const row = state.recent.find((other) => other.token === entry.token);
  if (row) row.state = outcome;
  renderRecent();
  if (outcome === "saved") {
    trouble("");
    say(entry.kind === "undo" ? "Taken back." : `Saved: ${spoken(entry)}.`);
    if (!outbox.waiting.length) fill();
  } else if (outcome === "waiting") {
    trouble(explained(error));
  } else {
    trouble(`An answer was not taken: ${error.message}`);
  }
}

// Until the server has answered.
async function insist(path) {
  for (;;) {
    try {
      const found = await ask(path);
      trouble("");
      return found;
    } catch (error) {
      trouble(explained(error));
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
  }
}

function explained(error) {
  const num = outbox?.waiting.length ?? 0;
  const kept = num ? `${num === 1 ? "Your last answer is" : `Your last ${num} answers are`} kept here and sent again. ` : "";
  if (error.status === 401) return `${kept}The server wants a new token: open the link that it printed.`;
  return error.status ? `${kept}The server says: ${error.message}` : `${kept}The server does not answer; trying again…`;
}

// The cards in the hands of this window. The server says which they are; it hands out again what it forgot.
async function fill() {
  if (outbox.waiting.length || !state.labeller) return;
  if (isFilling) {
    // What is on its way may be older than what this call is for.
    isStale = true;
    return;
  }
  isFilling = true;
  isStale = false;
  answered = new Set();
  try {
    const holding = [...(state.card && !state.edited ? [state.card] : []), ...state.queue].map((card) => card.item);
    const count = Math.max(AHEAD + 1, holding.length);
    const cards = await ask("cards", { labeller: state.labeller, window: tab(), count, holding });
    hold(cards.filter((card) => !answered.has(card.item)));
    trouble("");
  } catch (error) {
    trouble(explained(error));
    setTimeout(fill, AGAIN);
  } finally {
    isFilling = false;
    if (!state.card) rest();
  }
  // What was answered meanwhile makes room.
  if (isStale || (state.queue.length < AHEAD && answered.size && !outbox.waiting.length)) fill();
}

function hold(cards) {
  const current = state.edited ? null : cards.find((card) => card.item === state.card?.item);
  const isGone = !state.edited && state.card && !current && !answered.has(state.card.item) && !outbox.items.includes(state.card.item);
  state.queue = cards.filter((card) => card.item !== state.card?.item);
  for (const card of state.queue) if (card.kind === "image") new Image().src = picture(card.item);
  if (isGone) say("Somebody else has that one now.");
  if (isGone || !state.card) return advance();
  if (current) {
    Object.assign(state.card, current);
    renderCard();
  }
}

function follow() {
  events?.close();
  events = null;
  // A browser has few connections to one server: a page that is not seen gives its own back.
  if (document.hidden) return;
  events = new EventSource("events");
  events.addEventListener("open", () => { outbox.hurry(); fill(); });
  events.addEventListener("progress", (event) => {
    const progress = JSON.parse(event.data);
    showProgress(progress);
    if (progress.round !== state.round || !state.card) fill();
    state.round = progress.round;
  });
  events.addEventListener("error", () => {
    if (events?.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN);
  });
}

// -- answering ---------------------------------------------------------------------------------------------

function decide(kind, label = null) {
  const { card } = state;
  if (!card) return;
  const token = outbox.add({ labeller: state.labeller, item: card.item, kind, label });
  answered.add(card.item);
  state.recent = [{ token, card, kind, label, state: "saving" }, ...state.recent.filter((row) => row.card.item !== card.item)].slice(0, LAST);
  state.edited = null;
  say(`${spoken({ kind, label })}: saving…`);
  renderRecent();
  advance();
}

function undo() {
  const last = state.recent.shift();
  if (!last) return say("There is nothing to take back.");
  outbox.add({ labeller: state.labeller, item: last.card.item, kind: "undo", label: null });
  answered.delete(last.card.item);
  if (state.card && !state.edited) state.queue.unshift(state.card);
  state.edited = null;
  renderRecent();
  show(last.card);
}

function edit(row) {
  if (state.card && !state.edited) state.queue.unshift(state.card);
  state.edited = row;
  show(row.card);
}

function keep() {
  if (!state.edited) return;
  state.edited = null;
  advance();
}

function agree() {
  const belief = state.card?.belief;
  if (!belief || !$("believing").checked) return say("The model has said nothing of this one.");
  const [likeliest] = Object.entries(belief).reduce((one, other) => (other[1].mean > one[1].mean ? other : one));
  decide("label", likeliest);
}

function advance() {
  show(state.queue.shift() ?? null);
  if (state.queue.length < AHEAD) fill();
}

// -- showing -----------------------------------------------------------------------------------------------

function show(card) {
  state.card = card;
  $("question").hidden = !card;
  $("rest").hidden = Boolean(card);
  if (!card) {
    rest();
    return $("rest").focus({ preventScroll: true });
  }
  showItem(card);
  renderCard();
  // From here space skips, and a screen reader begins to read; a button that was pressed must not be pressed again.
  $("question").focus({ preventScroll: true });
}

function renderCard() {
  const { card, edited, session } = state;
  $("asked").textContent = card.kind === "image" ? `Which class is image ${card.item}?` : `Which class is this: ${summary(card)}?`;
  $("question").dataset.item = card.item;
  $("editing").hidden = !edited;
  if (edited) $("editing").firstElementChild.textContent = `You said “${spoken(edited)}”. Choose again to change it.`;
  $("reason").replaceChildren(...(edited ? [] : [element("strong", { textContent: "Why this one? " }), sentence(card.reason)]));
  showBelief(session.classes, $("believing").checked ? card.belief : null, edited ? edited.label : undefined);
}

function rest() {
  const isDone = !isFilling && !outbox.waiting.length;
  $("rest").querySelector("h2").textContent = isDone ? "Nothing is left to ask" : "One moment…";
  $("rest").querySelector("p").textContent = isDone ? "All is answered, or in the hands of others. The last ten can still be changed." : "";
}

function renderRecent() {
  showRecent(state.recent, edit);
  document.body.dataset.waiting = outbox.waiting.length;
  $("undo").disabled = !state.recent.length;
}

function say(words) {
  $("status").textContent = words;
}

function trouble(words) {
  if ($("trouble").textContent === words) return;
  $("trouble").textContent = words;
  $("trouble").hidden = !words;
}

// -- keys --------------------------------------------------------------------------------------------------

function pressed(event) {
  const { key, target } = event;
  const isTyping = target.closest("input:not([type=checkbox]), textarea, select");
  if (event.repeat || event.altKey || event.metaKey || isTyping || !state.session || !state.labeller) return;
  // A button that has the focus is pressed by these, as everywhere.
  if (!event.ctrlKey && (key === " " || key === "Enter") && target.closest("button, a, input, summary")) return;
  const action = event.ctrlKey ? controlled(key) : plain(key);
  if (!action) return;
  event.preventDefault();
  action();
}

function controlled(key) {
  return { z: undo, Enter: agree, " ": () => decide("skip") }[key];
}

function plain(key) {
  const { keys } = state.session;
  if (Object.hasOwn(keys, key)) return () => decide("label", keys[key]);
  return {
    " ": () => decide("skip"), f: () => decide("flag"), n: () => decide("none"),
    b: () => $("believing").click(), "/": () => $("find").focus(), Backspace: undo, Escape: keep,
  }[key];
}

// -- beginning ---------------------------------------------------------------------------------------------

// Windows of one person have cards of their own; a reload stays the same window, whose name browsers keep.
function tab() {
  window.name ||= `credo-${Math.random().toString(36).slice(2)}`;
  return window.name;
}

function welcome() {
  $("welcome").hidden = false;
  $("question").hidden = $("rest").hidden = document.querySelector("aside").hidden = true;
  $("name").value = state.labeller;
  state.labeller = "";
  $("name").focus();
}

async function begin(labeller) {
  state.labeller = labeller;
  write("credo:labeller", labeller);
  const address = new URL(location);
  address.searchParams.set("labeller", labeller);
  history.replaceState(null, "", address);
  $("labeller").replaceChildren("as ", element("bdi", { textContent: labeller }));
  $("welcome").hidden = true;
  $("labeller").hidden = document.querySelector("aside").hidden = false;
  Object.assign(state, { card: null, queue: [], edited: null });
  const recent = await insist(`recent?${new URLSearchParams({ labeller })}`);
  state.recent = recent.map(({ answer, card }) => ({ ...answer, card, state: "saved" }));
  renderRecent();
  await fill();
  follow();
}

async function start() {
  const session = state.session = await insist("session");
  $("pool").textContent = session.pool;
  document.body.dataset.pool = session.fingerprint;
  document.title = `${session.pool} – credo`;
  makeClasses(session.classes, session.keys, (name) => decide("label", name));
  outbox = new Outbox(session.fingerprint, post, told);
  // What a reload interrupted goes first, so that nothing is asked that was answered.
  await Promise.race([outbox.send(), new Promise((resolve) => setTimeout(resolve, 3000))]);
  const known = new URL(location).searchParams.get("labeller") || read("credo:labeller");
  if (known) await begin(known);
  else welcome();
}

document.addEventListener("keydown", pressed);
document.addEventListener("visibilitychange", () => outbox && state.labeller && follow());
$("others").addEventListener("click", (event) => {
  const kind = event.target.closest("[data-kind]")?.dataset.kind;
  if (kind) decide(kind);
});
$("find").addEventListener("input", () => find($("find").value));
$("find").addEventListener("keydown", (event) => {
  const found = event.key === "Enter" && find($("find").value);
  if (event.key === "Escape" || found) $("find").value = "";
  if (found) found.click();
  if (event.key === "Escape") $("question").focus();
  if (!$("find").value) find("");
});
$("undo").addEventListener("click", undo);
$("back").addEventListener("click", keep);
$("labeller").addEventListener("click", welcome);
$("believing").checked = read("credo:believing") !== "no";
$("believing").addEventListener("change", () => {
  write("credo:believing", $("believing").checked ? "yes" : "no");
  if (state.card) renderCard();
});
$("welcome").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = $("name").value.trim();
  if (name) begin(name);
});
start();
