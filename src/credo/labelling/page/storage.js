// What the browser keeps for this page. It may be told to keep nothing: then it lives as long as the page.

const instead = new Map();

export function read(name) {
  try { return localStorage.getItem(name) ?? instead.get(name) ?? null; } catch { return instead.get(name) ?? null; }
}

export function write(name, text) {
  try { localStorage.setItem(name, text); } catch { instead.set(name, text); }
}

export function remove(name) {
  instead.delete(name);
  try { localStorage.removeItem(name); } catch { /* nothing was kept */ }
}

export function names() {
  try { return [...Object.keys(localStorage), ...instead.keys()]; } catch { return [...instead.keys()]; }
}
