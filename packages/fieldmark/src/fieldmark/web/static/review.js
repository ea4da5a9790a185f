// Keys for the review page; without this script every choice is a button as well.
"use strict";
(() => {
  const form = document.getElementById("decide");
  if (!form) return;
  const opened = performance.now();
  const field = document.getElementById("name");
  form.addEventListener("submit", () => {
    document.getElementById("seconds").value = ((performance.now() - opened) / 1000).toFixed(1);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (document.activeElement === field) {
      if (event.key === "Escape") field.blur();
      if (event.key === "Enter" && field.value.trim()) {
        event.preventDefault();
        form.requestSubmit(form.querySelector("[name=typed]"));
      }
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      field.focus();
      return;
    }
    const at = document.activeElement;
    const free = at === document.body || at === document.getElementById("content");
    const wanted = event.key === "Enter" ? (free ? "[data-first]" : null) : `[data-key="${CSS.escape(event.key.toLowerCase())}"]`;
    const target = wanted && document.querySelector(wanted);
    if (target) {
      event.preventDefault();
      target.click();
    }
  });
})();
