// What the server renders takes the place of what is there, so that there is one rendering.
// Nothing moves under a reader: not while text is selected, or something on the page has the focus.
(() => {
  const SECONDS = 2;
  const heading = document.getElementById("heading");
  const facts = document.getElementById("facts");
  const told = document.getElementById("told");
  const button = document.getElementById("pause");
  let running = true;
  const show = () => { button.textContent = running ? "Pause" : "Go on"; };
  const busy = () => !getSelection().isCollapsed || facts.contains(document.activeElement);
  const refresh = async () => {
    try {
      const answer = await fetch(location.pathname, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (running && !busy()) {
        for (const part of [heading, facts]) {
          part.replaceChildren(...page.getElementById(part.id).childNodes);
        }
      }
      told.textContent = "";
    } catch {
      told.textContent = "No answer any more: these are the last figures that came.";
    }
  };
  const turn = async () => {
    if (running && !document.hidden && !busy()) await refresh();
    setTimeout(turn, SECONDS * 1000);
  };
  button.addEventListener("click", () => { running = !running; show(); });
  show();
  button.hidden = false;
  document.getElementById("reload").hidden = true;
  setTimeout(turn, SECONDS * 1000);
})();
