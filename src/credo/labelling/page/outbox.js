// Answers on their way: kept in the browser until the server has said that they are on its disk.
//
// Each has a token of its own, so that one that is sent twice, by this page or after a reload, counts once.

import { names, read, remove, write } from "./storage.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 4000;

export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }

  // Whether the answer itself is wrong, so that it is of no use to send it again.
  get isFinal() {
    return this.status === 413 || this.status === 422;
  }
}

export class Outbox {
  // `post` sends an entry; `tell` hears what became of it: "saved", "waiting" or "refused", with the error.
  constructor(pool, post, tell) {
    this.prefix = `credo:${pool}:`;
    this.post = post;
    this.tell = tell;
    this.waiting = stored(this.prefix);
    this.isSending = false;
    this.hurry = () => {};
  }

  get items() {
    return this.waiting.map((entry) => entry.item);
  }

  add(answer) {
    const entry = { ...answer, token: token(), order: performance.timeOrigin + performance.now() };
    write(this.prefix + entry.token, JSON.stringify(entry));
    this.waiting.push(entry);
    this.send();
    return entry.token;
  }

  // One after the other, in the order in which they were given: an undo comes after what it takes back.
  async send() {
    if (this.isSending) return;
    this.isSending = true;
    let wait = FIRST_PAUSE;
    while (this.waiting.length) {
      const entry = this.waiting[0];
      try {
        await this.post(entry);
        this.#drop(entry);
        this.tell(entry, "saved");
        wait = FIRST_PAUSE;
      } catch (error) {
        if (error.isFinal) this.#drop(entry);
        this.tell(entry, error.isFinal ? "refused" : "waiting", error);
        if (!error.isFinal) {
          await this.#pause(wait);
          wait = Math.min(2 * wait, LONGEST_PAUSE);
        }
      }
    }
    this.isSending = false;
  }

  #drop(entry) {
    this.waiting = this.waiting.filter((other) => other.token !== entry.token);
    remove(this.prefix + entry.token);
  }

  #pause(milliseconds) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.hurry = () => { clearTimeout(timer); resolve(); };
    });
  }
}

// crypto.randomUUID is not there on pages without TLS, as a server in the local network has them.
function token() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function stored(prefix) {
  const entries = names().filter((name) => name.startsWith(prefix)).map((name) => JSON.parse(read(name)));
  return entries.sort((one, other) => one.order - other.order);
}
