"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const calls = Array.from(document.querySelectorAll("tbody.call"));
  const ticks = Array.from(document.querySelectorAll("input.tick"));
  const tool = document.getElementById("tool");
  const fate = document.getElementById("fate");
  const number = new Intl.NumberFormat("en");
  const say = (id, text) => {
    const place = document.getElementById(id);
    if (place && place.textContent !== text) place.textContent = text;
  };

  const filter = () => {
    let shown = 0;
    for (const call of calls) {
      const hide =
        (tool.value !== "" && call.dataset.tool !== tool.value) ||
        (fate.value !== "" && call.dataset.fate !== fate.value);
      call.hidden = hide;
      if (!hide) shown += 1;
    }
    say("shown", `${shown} of ${calls.length} calls`);
  };

  const pick = () => {
    const accepted = ticks.filter((tick) => tick.checked);
    const ids = accepted.map((tick) => tick.value);
    let freed = 0;
    for (const tick of ticks) {
      const call = tick.closest("tbody");
      call.classList.toggle("refused", !tick.checked);
      if (tick.checked) freed += Number(call.dataset.freed);
    }
    const list = `[${ids.map((id) => JSON.stringify(id)).join(", ")}]`;
    const python = ids.length
      ? `await agent.accept_compaction(proposal, calls=${list})`
      : "await agent.reject_compaction(proposal)";
    say("snippet", python);
    say("accepted", JSON.stringify({ proposal_id: facts.proposal_id, calls: ids }));
    const total = `${ids.length} of ${ticks.length} changes accepted`;
    say("picked", `${total}, ${number.format(freed)} characters of output freed`);
  };

  const tickShown = (checked) => {
    for (const tick of ticks) {
      if (!tick.closest("tbody").hidden) tick.checked = checked;
    }
    pick();
  };

  const openAll = (open) => {
    for (const details of document.querySelectorAll("details.cut")) details.open = open;
  };

  const copy = async (button) => {
    const source = document.getElementById(button.dataset.of);
    let done = false;
    try {
      await navigator.clipboard.writeText(source.textContent);
      done = true;
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      const selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      done = document.execCommand("copy");
    }
    button.textContent = done ? "Copied" : "Selected: press Ctrl+C";
    say("picked", done ? "Copied" : "Selected: press Ctrl+C to copy");
    setTimeout(() => {
      button.textContent = "Copy";
      pick();
    }, 2000);
  };

  tool.addEventListener("change", filter);
  fate.addEventListener("change", filter);
  for (const tick of ticks) tick.addEventListener("change", pick);
  const expand = document.getElementById("expand");
  expand.addEventListener("click", () => {
    const open = expand.textContent.startsWith("Open");
    openAll(open);
    expand.textContent = open ? "Close all details" : "Open all details";
  });
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", () => copy(button));
  }
  const on = (id, act) => document.getElementById(id)?.addEventListener("click", act);
  on("all", () => tickShown(true));
  on("none", () => tickShown(false));
  window.addEventListener("beforeprint", () => openAll(true));
  window.addEventListener("afterprint", () => openAll(expand.textContent.startsWith("Close")));
  // A reload restores filters and ticks.
  filter();
  pick();
})();
