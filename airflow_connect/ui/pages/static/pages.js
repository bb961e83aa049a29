// Pages work without this script. It follows Airflow's theme, refreshes numbers, and opens pages of Airflow itself.
"use strict";
const theme = () => {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* storage is switched off: the system's theme is used */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
};
theme();
addEventListener("storage", theme);

// A page in a frame may not replace the page around it, but that page's own links may.
const openInAirflow = (event) => {
  const link = event.target.closest?.("a[data-airflow]");
  if (!link || window.parent === window) return;
  event.preventDefault();
  const outside = parent.document.createElement("a");
  outside.href = link.href;
  parent.document.body.append(outside);
  outside.click();
  outside.remove();
};

const chooseAll = (event) => {
  const name = event.target.dataset?.choose;
  if (!name) return;
  const boxes = [...document.querySelectorAll(`input[type=checkbox][name="${name}"]`)];
  const all = boxes.every((box) => box.checked);
  for (const box of boxes) box.checked = !all;
};

// The title of a bar at once, where the pointer or the keyboard is; the browser's own comes late, and not on touch.
const tip = (event) => {
  document.querySelector(".tip")?.remove();
  const mark = event.target.closest?.("[data-tip]");
  if (!mark || event.type === "pointerout" || event.type === "focusout") return;
  const place = mark.getBoundingClientRect(), shown = document.createElement("div");
  shown.className = "tip";
  shown.setAttribute("aria-hidden", "true"); // The mark has the same words as its label.
  shown.textContent = mark.querySelector("title").textContent;
  document.body.append(shown);
  shown.style.left = `${Math.max(4, Math.min(place.left, innerWidth - shown.offsetWidth - 4))}px`;
  shown.style.top = `${place.top - shown.offsetHeight - 6 > 0 ? place.top - shown.offsetHeight - 6 : place.bottom + 6}px`;
};

// What somebody is working with must not change under their hands.
const isBusy = () => {
  const live = document.getElementById("live");
  const typing = live.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, button, summary, a");
  return pressed !== null || typing || document.hidden || live.querySelector("input:checked, details[open], form.fields") !== null || String(getSelection()) !== "";
};

let known = new Date();

// What cannot be read again is not shown as if it were new: since when it is old, why, and where to log in.
const isOld = (why, login) => {
  const told = document.getElementById("old") ?? document.createElement("p");
  const since = `${known.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  const text = `This page shows what was known at ${since}, and cannot be read again. ${why} `;
  if (told.firstChild?.textContent === text) return; // A screen reader hears it once.
  told.id = "old";
  told.className = "note bad";
  told.setAttribute("role", "alert");
  told.replaceChildren(text, ...(login ? [document.adoptNode(login)] : []));
  document.getElementById("live").before(told);
};

const refresh = async () => {
  if (isBusy()) return;
  let answer, page;
  try {
    answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    isOld("Airflow does not answer.");
    return;
  }
  const fresh = page.getElementById("live");
  if (!answer.ok || !fresh) {
    const why = page.querySelector("[role=alert]")?.textContent ?? `The answer of Airflow has the status ${answer.status}.`;
    isOld(answer.status === 401 ? "Your session has ended." : why, page.querySelector("[data-login]"));
    return;
  }
  if (isBusy()) return;
  known = new Date();
  document.getElementById("old")?.remove();
  document.getElementById("live").replaceWith(document.adoptNode(fresh));
  say();
};

// A screen reader hears how far a run is, and its end; the same words are not said again.
const say = () => {
  const words = document.querySelector("#live [data-say]")?.dataset.say ?? "";
  const said = document.getElementById("said");
  if (words || said.textContent) said.textContent = words || "The run has ended.";
};

// A page that does not have everything yet, or is old, asks after a second.
const again = () => {
  const every = Number(document.getElementById("live").dataset.every);
  if (!every) return; // What this page shows does not change any more.
  const seconds = document.querySelector("#live [data-soon]") ? 1 : every;
  setTimeout(async () => {
    await refresh();
    again();
  }, 1000 * seconds);
};

// A double click is one click: the second one would start another run.
let pressed = null;
const sendOnce = (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  const button = event.submitter ?? event.target;
  if (button === pressed) { event.preventDefault(); return; }
  pressed = button;
  button.setAttribute("aria-busy", "true");
};

// The answer to a click is not told again when the page is loaded again or its address is sent to somebody.
const forgetAnswer = () => {
  const address = new URL(location.href);
  if (!address.searchParams.has("done")) return;
  address.searchParams.delete("done");
  history.replaceState(history.state, "", address);
};

addEventListener("DOMContentLoaded", () => {
  document.addEventListener("click", openInAirflow);
  document.addEventListener("click", chooseAll);
  for (const type of ["pointerover", "pointerout", "focusin", "focusout"]) document.addEventListener(type, tip);
  document.addEventListener("submit", sendOnce);
  addEventListener("pageshow", () => { pressed?.removeAttribute("aria-busy"); pressed = null; });
  forgetAnswer();
  if (document.getElementById("live")) again();
});
