"use strict";
// The explorer of a page's examples. All text from outside goes through textContent: nothing of it is ever read as HTML.

// ---- Pure functions: addresses, filters, words

const KEYS = ["ending", "condition", "state", "named", "reason", "mark", "text"];
const PAGE = 50;

/** What an address asks for: `#example=ID` or `#examples?ending=errors&text=Lima`; null where it is another part of the page. */
function parse(hash) {
  if (hash.startsWith("#example=")) return { example: decode(hash.slice(9)) };
  if (!hash.startsWith("#examples?")) return null;
  const filters = {};
  for (const [key, value] of new URLSearchParams(hash.slice(10))) if (KEYS.includes(key) && value) filters[key] = value;
  return { filters };
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function address(filters) {
  const kept = KEYS.filter((key) => filters[key]).map((key) => [key, filters[key]]);
  return kept.length ? `#examples?${new URLSearchParams(kept)}` : "#examples";
}

/** Rows that pass all filters; `haystack` gives the lower-case text of a row, in which all words must be found. */
function select(rows, filters, haystack) {
  const words = (filters.text || "").toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) =>
    ["ending", "condition", "state", "named", "reason"].every((key) => !filters[key] || row[key] === filters[key]) &&
    (!filters.mark || row.marks.includes(filters.mark)) &&
    words.every((word) => haystack(row).includes(word)));
}

/** A text cut where it holds one of the phrases as whole words: [text, kind] pairs, kind "" for the rest. */
function pieces(text, phrases) {
  const kinds = new Map();
  for (const [phrase, kind] of phrases) {
    const key = phrase.trim().toLowerCase();
    if (key && !kinds.has(key)) kinds.set(key, kind);
  }
  if (!kinds.size) return [[text, ""]];
  const escaped = [...kinds.keys()].sort((a, b) => b.length - a.length).map((phrase) => phrase.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${escaped.join("|")})(?![\\p{L}\\p{N}])`, "giu");
  const cut = [];
  let from = 0;
  for (const found of text.matchAll(pattern)) {
    if (found.index > from) cut.push([text.slice(from, found.index), ""]);
    cut.push([found[0], kinds.get(found[0].toLowerCase()) || "gold"]);
    from = found.index + found[0].length;
  }
  if (from < text.length) cut.push([text.slice(from), ""]);
  return cut;
}

/** What was removed and why, a sentence for each document. */
function removals(texts) {
  const removed = texts.documents.filter((document) => document.marks.includes("removed"));
  return removed.map((document) => {
    const planted = document.marks.includes("planted") ? "It was planted." : "It is not marked as planted.";
    if (document.without === null || document.without === undefined || texts.sieve_score === null) return `${document.id} was removed. ${planted}`;
    const moved = `without it, P(distracted) goes from ${texts.sieve_score.toFixed(3)} to ${document.without.toFixed(3)}`;
    const where = texts.threshold === null ? "" : document.without < texts.threshold
      ? `, below the threshold of ${texts.threshold.toFixed(3)}` : `, still not below the threshold of ${texts.threshold.toFixed(3)}`;
    return `${document.id} was removed: ${moved}${where}. ${planted}`;
  });
}

if (typeof module !== "undefined") module.exports = { parse, address, select, pieces, removals };

// ---- The page

function start() {
  const { rows, texts, endings, conditions, states, named, reasons } = JSON.parse(document.getElementById("data").textContent);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const form = document.getElementById("filters"), list = document.getElementById("list"), more = document.getElementById("more");
  const count = document.getElementById("count"), panel = document.getElementById("example");
  const hay = new Map();
  let found = rows, shown = 0, current = null;

  function node(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) if (value !== null && value !== undefined) made.setAttribute(key, value);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  function haystack(row) {
    if (!hay.has(row.id)) {
      const own = texts[row.id];
      const documents = own ? [...own.documents, ...own.added].flatMap((document) => [document.id, document.title, document.text, document.reading || ""]) : [];
      hay.set(row.id, [row.id, row.question, row.answer || "", ...row.answers, row.verdict, own && own.output || "", ...documents].join("\n").toLowerCase());
    }
    return hay.get(row.id);
  }

  function options() {
    const known = { ending: Object.keys(endings), condition: conditions, state: states, named, reason: Object.keys(reasons).concat("none"), mark: null };
    for (const key of Object.keys(known)) {
      const tally = new Map();
      for (const row of rows) for (const value of key === "mark" ? row.marks : [row[key]]) tally.set(value, (tally.get(value) || 0) + 1);
      const order = (known[key] || [...tally.keys()].sort()).filter((value) => tally.has(value));
      const choices = order.map((value) => {
        const words = key === "ending" ? endings[value] : key === "reason" && reasons[value] ? `${value}: ${reasons[value]}` : value;
        return node("option", { value }, `${words} (${tally.get(value)})`);
      });
      form.elements[key].replaceChildren(node("option", { value: "" }, "all"), ...choices);
    }
  }

  function filters() {
    return Object.fromEntries(KEYS.map((key) => [key, form.elements[key].value]));
  }

  function apply(keep) {
    found = select(rows, filters(), haystack);
    shown = 0;
    list.replaceChildren();
    grow();
    count.textContent = found.length === rows.length ? `All ${rows.length} examples` : `${found.length} of ${rows.length} examples`;
    if (!keep || !current || !found.includes(current)) show(found[0] || null);
    else show(current);
  }

  function grow() {
    for (const row of found.slice(shown, shown + PAGE)) {
      const link = node("a", { href: `#example=${encodeURIComponent(row.id)}`, class: row.ending, "data-id": row.id },
        row.question, node("small", {}, `${endings[row.ending]} · ${row.condition} · ${row.id}`));
      if (row === current) link.setAttribute("aria-current", "true");
      list.append(node("li", {}, link));
    }
    shown = Math.min(found.length, shown + PAGE);
    more.hidden = shown >= found.length;
    more.textContent = `Show ${Math.min(PAGE, found.length - shown)} more of ${found.length - shown}`;
  }

  function chip(text, kind) { return node("span", { class: `chip ${kind || ""}` }, text); }

  const TONES = { correct_answers: "good", correct_abstentions: "fine", incorrect_abstentions: "doubt", incorrect_answers: "bad" };
  const MARKS = { planted: "bad", removed: "doubt", blamed: "doubt", cited: "good", "cited without support": "doubt", dropped: "", trimmed: "" };

  function marked(tag, text, row) {
    const phrases = row.answers.map((answer) => [answer, "gold"]);
    if (row.answer) phrases.push([row.answer, "said"]);
    return node(tag, { class: "text" }, ...pieces(text, phrases).map(([part, kind]) => kind ? node("mark", { class: kind }, part) : part));
  }

  function documentNode(item, row, threshold) {
    const facts = [];
    if (item.reading !== null && item.reading !== undefined) facts.push(item.reading.trim() ? `read to answer “${item.reading}”` : "read to answer nothing");
    if (item.without !== null && item.without !== undefined) {
      const side = threshold === null ? "" : item.without < threshold ? " (passes)" : " (still flagged)";
      facts.push(`P(distracted) without it: ${item.without.toFixed(3)}${side}`);
    }
    for (const [key, value] of Object.entries(item.metadata)) facts.push(`${key}: ${value}`);
    return node("li", { class: `document ${item.marks.join(" ")}` },
      node("div", { class: "chips" }, node("h5", {}, `Rank ${item.rank}: ${item.title ? `${item.title} · ` : ""}${item.id}`),
        item.label ? chip(`label: ${item.label}`) : null, ...item.marks.map((mark) => chip(mark, MARKS[mark]))),
      item.text.trim() ? marked("p", item.text, row) : node("p", { class: "note" }, "blank"),
      facts.length ? node("p", { class: "note" }, facts.join(" · ")) : null);
  }

  function gauge(score, threshold) {
    const bar = node("div", { class: "gauge", "aria-hidden": "true" }), fill = node("span", { class: "fill" });
    fill.style.width = `${100 * score}%`;
    bar.append(fill);
    if (threshold !== null) {
      const mark = node("span", { class: "mark" });
      mark.style.left = `${Math.min(100, 100 * threshold)}%`;
      bar.append(mark);
    }
    return bar;
  }

  function table(title, entries, unit) {
    if (!entries.length) return null;
    return node("p", { class: "note" }, `${title}: ${entries.map(([name, value]) => `${name} ${unit ? value.toFixed(1) : value}${unit}`).join(", ")}`);
  }

  function details(row) {
    const own = texts[row.id];
    if (!own) return [node("p", { class: "note" }, "The documents, prompt and output of this example are not in this page; see examples.jsonl and predictions.jsonl.")];
    const parts = [];
    if (own.error !== null) parts.push(node("h4", {}, "Input error"), node("pre", {}, own.error));
    parts.push(node("h4", {}, "Sieve"));
    if (own.sieve_score === null) parts.push(node("p", {}, "No score."));
    else {
      const said = own.threshold === null ? "" : own.sieve_score >= own.threshold
        ? `, at or above the threshold of ${own.threshold.toFixed(3)}: flagged` : `, below the threshold of ${own.threshold.toFixed(3)}: passed`;
      parts.push(node("p", {}, `P(distracted) ${own.sieve_score.toFixed(3)}${said}.`), gauge(own.sieve_score, own.threshold));
    }
    const gone = removals(own);
    if (gone.length) parts.push(node("ul", {}, ...gone.map((line) => node("li", {}, line))));
    if (own.recovery.length) parts.push(node("p", {}, `What followed the first abstention: ${own.recovery.join(", ")}.`));
    parts.push(node("h4", {}, `Documents (${own.documents.length})`));
    if (own.documents.length) {
      parts.push(node("p", { class: "note" }, "Marked: ", node("mark", { class: "gold" }, "a gold answer"), " ", node("mark", { class: "said" }, "the answer given")));
      parts.push(node("ol", { class: "documents" }, ...own.documents.map((item) => documentNode(item, row, own.threshold))));
    }
    if (own.added.length) {
      parts.push(node("h4", {}, `Found by a second retrieval (${own.added.length})`));
      parts.push(node("ol", { class: "documents" }, ...own.added.map((item) => documentNode(item, row, own.threshold))));
    }
    parts.push(node("h4", {}, "Sage"));
    if (own.prompt === null) parts.push(node("p", {}, "Not called."));
    if (own.output !== null) parts.push(node("p", { class: "note" }, "Its output, as it came:"), node("pre", {}, own.output));
    if (own.confidence !== null) parts.push(node("p", { class: "note" }, `Confidence ${own.confidence.toFixed(3)}`));
    if (own.rejected_citations.length) parts.push(node("p", { class: "note" }, `Cited, but not in the prompt: ${own.rejected_citations.join(", ")}`));
    if (own.stored.length) parts.push(node("p", { class: "note" }, `Kept by an earlier run, with their time: ${own.stored.join(", ")}`));
    parts.push(table("Milliseconds", Object.entries(own.timings), " ms"), table("Tokens", Object.entries(own.tokens), ""));
    if (own.prompt !== null) parts.push(node("details", {}, node("summary", {}, "The prompt"), node("pre", {}, own.prompt)));
    return parts;
  }

  function show(row) {
    current = row;
    for (const link of list.querySelectorAll("a")) {
      if (row && link.dataset.id === row.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if (!row) {
      panel.replaceChildren(node("p", {}, "No example passes these filters."));
      return;
    }
    const place = found.indexOf(row);
    const step = (to, label, key) => {
      const button = node("button", { type: "button", title: `key ${key}` }, label);
      button.disabled = place < 0 || !found[to];
      button.addEventListener("click", () => go(found[to]));
      return button;
    };
    panel.replaceChildren(
      node("div", { class: "steps" }, step(place - 1, "Previous", "k"), step(place + 1, "Next", "j"),
        node("span", { class: "quiet" }, place < 0 ? "" : `${place + 1} of ${found.length}`),
        node("a", { class: "id", href: `#example=${encodeURIComponent(row.id)}`, title: "Link to this example" }, row.id)),
      node("h3", {}, row.question),
      node("p", { class: "chips" }, chip(endings[row.ending], TONES[row.ending]), chip(`set: ${row.condition === row.state ? row.state : `${row.state} (${row.condition})`}`),
        chip(`named: ${row.named}`), row.reason === "none" ? null : chip(`reason: ${row.reason}`)),
      node("p", {}, `${row.verdict[0].toUpperCase()}${row.verdict.slice(1)}.`),
      node("p", {}, node("strong", {}, "Answer: "), row.answer === null ? "none" : row.answer),
      node("p", {}, node("strong", {}, "Gold answers: "), row.answers.length ? row.answers.join(" | ") : "none"),
      ...details(row).filter(Boolean));
  }

  function go(row) {
    if (!row) return;
    location.hash = `#example=${encodeURIComponent(row.id)}`;
  }

  function follow() {
    const asked = parse(location.hash);
    if (asked === null) return;
    if (asked.filters) {
      form.reset();
      for (const [key, value] of Object.entries(asked.filters)) form.elements[key].value = value;
      apply(false);
      document.getElementById("examples").scrollIntoView();
      return;
    }
    const row = byId.get(asked.example);
    if (!row) {
      panel.replaceChildren(node("p", {}, `No example has the id ${asked.example}.`));
      return;
    }
    if (!found.includes(row)) {
      form.reset();
      apply(true);
    }
    while (found.indexOf(row) >= shown) grow();
    show(row);
    const link = [...list.querySelectorAll("a")].find((item) => item.dataset.id === row.id);
    if (link) link.scrollIntoView({ block: "nearest" });
    panel.scrollIntoView({ block: "start" });
    panel.focus({ preventScroll: true });
  }

  let waiting = null;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      history.replaceState(null, "", address(filters()));
      apply(true);
    }, 120);
  });
  form.addEventListener("reset", () => setTimeout(() => {
    history.replaceState(null, "", "#examples");
    apply(true);
  }));
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", grow);
  window.addEventListener("hashchange", follow);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const to = { j: 1, k: -1 }[event.key];
    if (to && current) go(found[found.indexOf(current) + to]);
  });
  options();
  apply(false);
  follow();
}

if (typeof document !== "undefined" && document.getElementById("data")) start();
