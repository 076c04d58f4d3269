// Progress of a running job as it happens. Every page reads without this file.
"use strict";
const live = document.querySelector("[data-events]");
if (live !== null) {
  const steps = live.querySelector("ol");
  const state = document.querySelector("[data-state]");
  const source = new EventSource(live.dataset.events);
  const add = (message) => {
    const event = JSON.parse(message.data);
    const item = document.createElement("li");
    item.textContent = event.message;
    item.classList.toggle("phase", event.kind === "phase");
    steps.append(item);
    steps.scrollTop = steps.scrollHeight;
  };
  for (const kind of ["phase", "step", "attempt", "result"]) source.addEventListener(kind, add);
  source.addEventListener("end", (message) => {
    source.close();
    if (state !== null) state.textContent = JSON.parse(message.data).state;
    window.location.reload();
  });
}
// A dropped or chosen file fills the source field, so that it can be read before it is sent.
const file = document.querySelector("input[type=file][data-fills]");
if (file !== null) {
  const text = document.getElementById(file.dataset.fills);
  file.addEventListener("change", async () => {
    if (file.files.length === 1) text.value = await file.files[0].text();
  });
}
// A list with jobs that still run is read again while it is looked at.
const list = document.querySelector("[data-live]");
if (list !== null) {
  const again = async () => {
    if (!document.hidden) {
      const answer = await fetch(window.location.href, { headers: { Accept: "text/html" } }).catch(() => null);
      if (answer !== null && answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.querySelector("main .scroll tbody"), shown = list.querySelector("tbody");
        if (fresh !== null && fresh.innerHTML !== shown.innerHTML && !shown.contains(document.activeElement)) shown.replaceWith(fresh);
        if (page.querySelector("[data-live]") === null) return;
      }
    }
    window.setTimeout(again, 3000);
  };
  window.setTimeout(again, 3000);
}
