// Adds and removes rows of lists in forms made from a schema. Without this script the same buttons post the form and
// the server does it. Works for forms that htmx puts into the page later: it listens on the document.
(() => {
  "use strict";

  const listOf = (element) => element.closest("[data-schema-list]");

  const focusIn = (row) => {
    const box = row && row.querySelector("input:not([type=hidden]), textarea, select");
    if (box) box.focus();
  };

  const add = (list) => {
    const template = list.querySelector(":scope > template");
    const rows = list.querySelector(":scope > [data-schema-rows]");
    const index = Number(list.dataset.schemaNext);
    list.dataset.schemaNext = String(index + 1);
    const copy = document.createElement("template");
    copy.innerHTML = template.innerHTML.replaceAll(list.dataset.schemaMark, String(index));
    rows.append(copy.content);
    focusIn(rows.lastElementChild);
  };

  const remove = (row) => {
    const neighbour = row.nextElementSibling || row.previousElementSibling;
    const list = listOf(row.parentElement);
    row.remove();
    if (neighbour) focusIn(neighbour);
    else list.querySelector(":scope > [data-schema-add]").focus();
    list.dispatchEvent(new Event("change", { bubbles: true }));
  };

  // A switch, a choice or a date cannot hold a template: a box for a text takes its place.
  const takeTemplate = (button) => {
    const field = button.closest("[data-schema-field]");
    field.replaceChildren(field.querySelector(":scope > template").content.cloneNode(true));
    const box = field.querySelector("input");
    box.value = "{{  }}";
    box.focus();
    box.setSelectionRange(3, 3);
    box.dispatchEvent(new Event("input", { bubbles: true }));
  };

  document.addEventListener("click", (event) => {
    const template = event.target.closest("[data-schema-template]");
    if (template) {
      event.preventDefault();
      takeTemplate(template);
      return;
    }
    const button = event.target.closest("[data-schema-add], [data-schema-remove]");
    if (!button) return;
    event.preventDefault();
    if (button.hasAttribute("data-schema-add")) add(listOf(button));
    else remove(button.closest("[data-schema-row]"));
  });
})();
