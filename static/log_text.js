// A log line as nodes: colours of a whitelist, links to http(s) only, control and direction characters as symbols.
// Everything goes in through textContent; a line can never become markup.

const SGR = /\x1b\[([\d;:]{0,64})m/g;
const HIDDEN = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
const LINK = /https?:\/\/[^\s<>"'`\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]{1,2000}/gi;
const TRAILING = /[.,;:!?)\]}]+$/;

export const SHOWN_CHARS = 4000;

// A progress bar rewrites its line with \r: what a terminal would show at the end is the last part.
export const lastSegment = (text) => {
  if (!text.includes("\r")) return text;
  const parts = text.split("\r").filter((part) => part !== "");
  return parts.length ? parts[parts.length - 1] : "";
};

const symbol = (char) => {
  const code = char.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `\u2039U+${code.toString(16).toUpperCase().padStart(4, "0")}\u203a`;
};

// Kept: bold, and the 16 colours of the text. Anything else (256 colours, backgrounds, blinking, hiding) is dropped.
const styleAfter = (style, codes) => {
  const list = (codes || "0").split(/[;:]/).map(Number);
  for (let i = 0; i < list.length; i += 1) {
    const code = list[i];
    if (code === 0) style = { colour: 0, bold: false };
    else if (code === 1) style = { ...style, bold: true };
    else if (code === 22) style = { ...style, bold: false };
    else if (code === 39) style = { ...style, colour: 0 };
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) style = { ...style, colour: code };
    else if (code === 38 || code === 48) i += list[i + 1] === 5 ? 2 : list[i + 1] === 2 ? 4 : 0;
  }
  return style;
};

const segments = (text) => {
  const found = [];
  let style = { colour: 0, bold: false };
  let from = 0;
  for (const match of text.matchAll(SGR)) {
    if (match.index > from) found.push([text.slice(from, match.index), style]);
    style = styleAfter(style, match[1]);
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push([text.slice(from), style]);
  return found;
};

const element = (name, className, text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
};

// Text without links: hits of the search marked, hidden characters made visible.
const addText = (parent, text, needle) => {
  const lower = needle ? text.toLowerCase() : "";
  // Where lower-casing changes the length the positions would be wrong: such a line shows no marks.
  let at = needle && lower.length === text.length ? lower.indexOf(needle) : -1;
  let from = 0;
  while (at >= 0) {
    addVisible(parent, text.slice(from, at));
    const mark = element("mark", "", "");
    addVisible(mark, text.slice(at, at + needle.length));
    parent.append(mark);
    from = at + needle.length;
    at = lower.indexOf(needle, from);
  }
  addVisible(parent, text.slice(from));
};

const addVisible = (parent, text) => {
  if (!HIDDEN.test(text)) {
    if (text) parent.append(text);
    return;
  }
  let plain = "";
  for (const char of text) {
    if (!HIDDEN.test(char)) { plain += char; continue; }
    if (plain) parent.append(plain);
    plain = "";
    parent.append(element("span", "claw-log-hidden", symbol(char)));
  }
  if (plain) parent.append(plain);
};

const safeLink = (text) => {
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : "";
  } catch {
    return "";
  }
};

const addLinked = (parent, text, needle) => {
  let from = 0;
  for (const match of text.matchAll(LINK)) {
    const shown = match[0].replace(TRAILING, "");
    const href = safeLink(shown);
    if (!href) continue;
    addText(parent, text.slice(from, match.index), needle);
    const link = element("a", "", "");
    link.href = href;
    link.rel = "noopener noreferrer";
    link.target = "_blank";
    addText(link, shown, needle);
    parent.append(link);
    from = match.index + shown.length;
  }
  addText(parent, text.slice(from), needle);
};

// Fill `parent` with a line. `needle` is lower case. Returns how many characters were left out.
export const fillLine = (parent, text, needle, limit = SHOWN_CHARS) => {
  const whole = lastSegment(text);
  const shown = whole.length > limit ? whole.slice(0, limit) : whole;
  for (const [part, style] of segments(shown)) {
    if (!style.colour && !style.bold) { addLinked(parent, part, needle); continue; }
    const span = element("span", `${style.colour ? `claw-ansi-${style.colour}` : ""}${style.bold ? " claw-ansi-bold" : ""}`.trim(), "");
    addLinked(span, part, needle);
    parent.append(span);
  }
  return whole.length - shown.length;
};
