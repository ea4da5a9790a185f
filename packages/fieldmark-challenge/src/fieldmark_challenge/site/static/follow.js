// Looks again at a page that waits for something and shows what changed; without this script the page reloads itself.
"use strict";
(() => {
  const EVERY_MS = 3000;
  const look = async () => {
    try {
      const answer = await fetch(location.pathname);
      if (answer.redirected) return;
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        const [shown, found] = [document.querySelector("main"), fresh.querySelector("main")];
        if (found.innerHTML !== shown.innerHTML) shown.replaceChildren(...found.childNodes);
        if (!fresh.querySelector("script[src='/static/follow.js']")) return;
      }
    } catch {
      // No connection: it may be back the next time.
    }
    setTimeout(look, EVERY_MS);
  };
  setTimeout(look, EVERY_MS);
})();
