// Checks a configuration while it is typed. The form works without this script: then its button checks it.
"use strict";
(() => {
  const form = document.querySelector("form[data-live]");
  const PAUSE_MS = 400;
  const AGAIN_MS = 1000;
  let timer = 0;
  let asked = 0;
  let running = null;

  const named = (root, name) => root.querySelector(`[name="${CSS.escape(name)}"]`);
  const was = (root, control) => named(root, control.name.replace(/^set:/, "was:"))?.value ?? "";

  // What somebody has typed into a field stays, whatever the answer to an older question says.
  const keep = (old, fresh) => {
    for (const control of fresh.querySelectorAll('[name^="set:"]')) {
      const typed = named(old, control.name);
      if (!typed || typed.value === was(old, typed)) continue;
      control.value = typed.value;
      if (control.type === "text" && typed.type === "password") control.type = "password";
    }
    for (const details of fresh.querySelectorAll("details[data-group]")) {
      const known = old.querySelector(`details[data-group="${CSS.escape(details.dataset.group)}"]`);
      if (known) details.open = known.open;
    }
  };

  // The field that is being typed into is not touched, only what stands around it.
  const tell = (old, fresh) => {
    const [control, told] = [old, fresh].map((row) => row.querySelector('[name^="set:"]'));
    old.className = fresh.className;
    for (const name of ["aria-invalid", "aria-describedby"]) {
      if (told.hasAttribute(name)) control.setAttribute(name, told.getAttribute(name));
      else control.removeAttribute(name);
    }
    old.querySelector(".told").replaceWith(fresh.querySelector(".told"));
    old.querySelector('[name^="was:"]').value = fresh.querySelector('[name^="was:"]').value;
  };

  const rows = (root) => [...root.querySelectorAll("[data-key]")];
  const keysOf = (root) => rows(root).map((row) => row.dataset.key).sort().join("\n");

  // The list of classes has done its work: now the key itself has a field.
  const leaveClasses = (fresh) => {
    const classes = document.getElementById("class");
    if (!classes) return;
    const isFocused = classes === document.activeElement;
    classes.closest("p").remove();
    if (isFocused) named(fresh, classes.name)?.focus();
  };

  const showKeys = (old, fresh) => {
    if (rows(fresh).length === 0) return; // The text cannot be read at this moment, or its class is incomplete.
    keep(old, fresh);
    if (keysOf(old) !== keysOf(fresh)) {
      const focused = old.contains(document.activeElement) ? document.activeElement.name : "";
      old.replaceWith(fresh);
      if (focused) named(fresh, focused)?.focus();
      leaveClasses(fresh);
      return;
    }
    for (const row of rows(old)) {
      const next = fresh.querySelector(`[data-key="${CSS.escape(row.dataset.key)}"]`);
      if (row.contains(document.activeElement)) tell(row, next);
      else if (!row.isEqualNode(next)) row.replaceWith(next);
    }
  };

  // What the steps of a new connector have found. The focus stays on the button that was pressed.
  const showSteps = (fresh) => {
    const old = document.getElementById("steps");
    if (!old || !fresh || old.isEqualNode(fresh)) return;
    const pressed = old.contains(document.activeElement) ? document.activeElement.value : "";
    old.replaceWith(document.adoptNode(fresh));
    if (pressed) fresh.querySelector(`button[value="${CSS.escape(pressed)}"]`)?.focus();
    const told = fresh.querySelector("[data-say]")?.dataset.say ?? "";
    const said = document.getElementById("said");
    if (told && said && said.textContent !== told) said.textContent = told;
  };

  const ask = async (what) => {
    clearTimeout(timer);
    const mine = ++asked;
    running?.abort();
    running = new AbortController();
    const body = new URLSearchParams(new FormData(form));
    body.set("do", what);
    let answer;
    try {
      answer = await fetch(form.dataset.live, { method: "POST", body, signal: running.signal });
      if (!answer.ok) throw new Error(String(answer.status));
      answer = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      return; // A newer question was asked, or the server is away: the button says so.
    }
    if (mine !== asked) return; // The answer to an older question.
    const result = answer.getElementById("result");
    const shown = document.getElementById("result");
    if (!shown.isEqualNode(result)) shown.replaceWith(document.adoptNode(result));
    showSteps(answer.getElementById("steps"));
    showKeys(document.getElementById("keys"), document.adoptNode(answer.getElementById("keys")));
    form.dataset.checked = String(mine);
    if (result.querySelector("[data-waiting]")) timer = setTimeout(ask, AGAIN_MS, "plan");
    else if (document.querySelector("#steps [data-waiting]")) timer = setTimeout(ask, AGAIN_MS, "see");
  };

  form.addEventListener("input", () => {
    clearTimeout(timer);
    asked += 1; // What is on its way knows nothing of this.
    timer = setTimeout(ask, PAUSE_MS, "look");
  });
  form.addEventListener("submit", (event) => {
    const pressed = event.submitter?.value;
    if (!["check", "test", "records", "plan", "dag"].includes(pressed)) return;
    event.preventDefault();
    ask(pressed === "check" ? "plan" : pressed);
  });
})();
