// Small behaviours every page shares. All words come from the page, all state from the server.
(() => {
  "use strict";
  const words = JSON.parse(document.getElementById("claw-words")?.textContent || "{}");

  // 42 s, 2 min 11 s, 1 h 05 min: as the template filter spell_duration.
  const fill = (text, values) =>
    text.replace(/%\((\w+)\)(0?)(\d*)d/g, (_, key, zero, width) => String(values[key]).padStart(Number(width) || 1, zero || " "));
  const spell = (seconds) => {
    const total = Math.max(0, Math.floor(seconds));
    if (total < 60) return fill(words.s, { s: total });
    if (total < 3600) return fill(words.min, { min: Math.floor(total / 60), s: total % 60 });
    if (total < 86400) return fill(words.h, { h: Math.floor(total / 3600), min: Math.floor((total % 3600) / 60) });
    return fill(words.d, { d: Math.floor(total / 86400), h: Math.floor((total % 86400) / 3600) });
  };

  const tick = () => {
    for (const each of document.querySelectorAll(".claw-ticks[data-since]")) {
      each.textContent = spell((Date.now() - Date.parse(each.dataset.since)) / 1000);
    }
    for (const each of document.querySelectorAll(".claw-ticks[data-until]")) {
      each.textContent = spell((Date.parse(each.dataset.until) - Date.now()) / 1000);
    }
  };
  const relative = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto", style: "long" });
  const age = () => {
    for (const each of document.querySelectorAll("time[data-ago]")) {
      const seconds = (Date.now() - Date.parse(each.dateTime)) / 1000;
      if (seconds < 60) continue;
      const [value, unit] = seconds < 3600 ? [seconds / 60, "minute"] : seconds < 86400 ? [seconds / 3600, "hour"] : [seconds / 86400, "day"];
      // Chinese: a space between digits and characters, as everywhere on the page.
      each.textContent = relative.format(-Math.floor(value), unit).replace(/(\d)([\u4e00-\u9fff])/, "$1 $2");
    }
  };
  setInterval(() => { if (!document.hidden) tick(); }, 1000);
  setInterval(age, 20000);

  // What was typed before the scripts were there, or put back by the browser on reload, has told nobody yet.
  const differs = (field) => {
    if (field.type === "radio") return field.checked && !field.defaultChecked;
    if (field.type === "checkbox") return field.checked !== field.defaultChecked;
    if (field.tagName !== "SELECT") return field.value !== field.defaultValue;
    const preset = [...field.options].findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(preset, 0);
  };
  document.addEventListener("DOMContentLoaded", () => {
    for (const field of document.querySelectorAll(":is(input, select, textarea):is([hx-get], [hx-post])")) {
      if (differs(field)) for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true }));
    }
  });

  // <button data-copy="text" data-copy-from="id of a box with it">. Without TLS browsers give no clipboard: the old way.
  const copyText = async (button) => {
    const box = document.getElementById(button.dataset.copyFrom);
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(button.dataset.copy);
      else { box.select(); document.execCommand("copy"); }
    } catch {
      box?.select();
      return;
    }
    button.title = words.copied;
    const label = button.querySelector("[data-label]");
    if (!label) return;
    label.textContent = words.copied;
    setTimeout(() => { label.textContent = label.dataset.label; }, 2000);
  };

  // Menus made of <details>: one open at a time, closed by a click elsewhere or Escape.
  const closeMenus = (except) => {
    for (const menu of document.querySelectorAll("details.claw-dropdown[open]")) if (menu !== except) menu.open = false;
  };
  document.addEventListener("click", (event) => {
    closeMenus(event.target.closest("details.claw-dropdown"));
    const burger = event.target.closest("[data-toggle-sidebar]");
    const open = burger ? document.body.classList.toggle("claw-sidebar-open") : document.body.classList.contains("claw-sidebar-open");
    if (!burger && open && !event.target.closest(".claw-sidebar")) document.body.classList.remove("claw-sidebar-open");
    document.querySelector("[data-toggle-sidebar]")?.setAttribute("aria-expanded", String(document.body.classList.contains("claw-sidebar-open")));
    const copy = event.target.closest("[data-copy]");
    if (copy) copyText(copy);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeMenus(null);
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      const search = document.querySelector("[data-page-search]");
      if (search) { event.preventDefault(); search.focus(); }
    }
  });

  // <form data-confirm="Stop run 12?"> asks first; the sentence names the object.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const question = event.submitter?.dataset.confirm || form.dataset.confirm;
    const dialog = document.getElementById("confirm");
    if (!question || !dialog?.showModal || form.dataset.confirmed === "yes") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    document.getElementById("confirm-text").textContent = question;
    document.getElementById("confirm-yes").textContent = (event.submitter?.textContent || "").trim() || "OK";
    dialog.returnValue = "";
    dialog.onclose = () => {
      if (dialog.returnValue !== "yes") return;
      // A live page may have replaced the form while the question was open; the answer still belongs to it.
      if (!form.isConnected) {
        form.hidden = true;
        document.body.append(form);
      }
      form.dataset.confirmed = "yes";
      form.requestSubmit(event.submitter);
      delete form.dataset.confirmed;
    };
    dialog.showModal();
  }, true);

  // A second press while the first is under way would ask twice.
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method === "dialog" || event.target.hasAttribute("hx-post")) return;
    const buttons = event.target.querySelectorAll("button:not([type=button])");
    setTimeout(() => buttons.forEach((each) => { each.disabled = true; }), 0);
    setTimeout(() => buttons.forEach((each) => { each.disabled = false; }), 8000);
  });
  // Back-forward cache brings the page back as it was left.
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) document.querySelectorAll("button[disabled]").forEach((each) => { each.disabled = false; });
  });

  // Filters apply at once where a script runs; without one the button does.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-auto-submit]");
    if (form) form.requestSubmit();
  });

  // Cards narrowed by a search box: <input data-narrows="#spiders">.
  document.addEventListener("input", (event) => {
    const target = event.target.dataset?.narrows;
    if (!target) return;
    const wanted = event.target.value.trim().toLowerCase();
    for (const each of document.querySelectorAll(`${target} [data-text]`)) {
      each.hidden = wanted !== "" && !each.dataset.text.toLowerCase().includes(wanted);
    }
  });

  // After a refusal the summary of faults is read first.
  document.querySelector("[data-focus]")?.focus();

  window.claw = { spell, tick, age };
})();
