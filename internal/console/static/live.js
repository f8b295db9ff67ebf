// Refreshes the live parts of a page in place: no state of its own, nothing to lose, and a page that was left open
// overnight shows this night's incidents. A reader who has the tab hidden costs the server nothing.
"use strict";
const period = 2000;
async function refresh() {
  if (document.hidden) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(answer.statusText);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.title = fresh.title;
  for (const part of document.querySelectorAll(".live")) {
    const other = fresh.getElementById(part.id);
    if (other && other.innerHTML !== part.innerHTML) part.innerHTML = other.innerHTML;
  }
  document.body.classList.remove("stale");
}
async function loop() {
  try {
    await refresh();
  } catch {
    document.body.classList.add("stale");
  }
  setTimeout(loop, period);
}
setTimeout(loop, period);
