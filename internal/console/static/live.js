// Refreshes the live parts of a page in place: no state of its own, nothing to lose, and a page that was left open
// overnight shows this night's incidents. A reader who has the tab hidden costs the server nothing.
"use strict";
const period = 2000;
const stale = document.getElementById("stale");

// busy tells whether replacing a part would take something from under the reader's hands.
function busy(part) {
  const selected = getSelection();
  const typed = [...part.querySelectorAll("input")].some((input) => input.value || input === document.activeElement);
  return typed || (!selected.isCollapsed && part.contains(selected.anchorNode));
}

function replace(part, fresh) {
  const link = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  part.innerHTML = fresh.innerHTML;
  if (link) part.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus({ preventScroll: true });
}

async function refresh() {
  if (document.hidden) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(20000) });
  if (!answer.ok) throw new Error(answer.statusText);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.title = page.title;
  for (const part of document.querySelectorAll(".live")) {
    const fresh = page.getElementById(part.id);
    if (fresh && fresh.innerHTML !== part.innerHTML && !busy(part)) replace(part, fresh);
  }
}

async function loop() {
  let trouble = "";
  try {
    await refresh();
  } catch {
    trouble = "No answer from Tocsin: this page is old.";
  }
  if (stale.textContent !== trouble) stale.textContent = trouble;
  setTimeout(loop, period);
}

// Only pages with live parts that showed well refresh; an error page stays for its reader.
if (document.querySelector("main .live")) setTimeout(loop, period);
