// What pages do with script: they fetch themselves again when something has changed, and can be used by keyboard alone.
// Nothing here decides anything: an answer is a press of a button that stands on the page without script, too.
// No text of the server becomes markup: a page is fetched as a document, and its nodes are put into this one.
"use strict";

(() => {
  // How long after one fetch the next one may begin, milliseconds.
  const PAUSE = 150;
  // How long a fetch may take.
  const FETCH_MAX = 15000;
  // After a refused stream or a failed fetch.
  const AGAIN = 15000;
  // How often a page that nobody sees fetches itself: browsers give all pages of a server six connections, and a hidden one holds none.
  const HIDDEN = 60000;
  // How long a lost connection is not worth a word.
  const LOST = 3000;

  const $ = (css, root = document) => root.querySelector(css);
  const $$ = (css, root = document) => [...root.querySelectorAll(css)];
  const main = () => document.getElementById("main");
  const note = document.getElementById("said");

  const say = (words, href, link) => {
    if (!note) return;
    note.replaceChildren(words);
    if (href) {
      const anchor = document.createElement("a");
      anchor.href = href;
      anchor.textContent = link;
      note.append(" ", anchor);
    }
  };

  /* The page as it is now. */

  const fetched = (address) => new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.timeout = FETCH_MAX;
    // The login is not used by this: it ends when the person is gone for long.
    request.setRequestHeader("toolhost-live", "1");
    request.onloadend = () => done(request);
    request.send();
  });

  const name = (node) => node.nodeType === 1 ? node.id || node.dataset.ask || node.dataset.ended || "" : "";
  const isField = (node) => /^(TEXTAREA|INPUT|SELECT)$/.test(node.nodeName);
  const isTyped = (field) => field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
    : field.nodeName === "SELECT" ? [...field.options].some((option) => option.selected !== option.defaultSelected)
      : field.type !== "hidden" && field.value !== field.defaultValue;
  const hasTyped = (node) => node.nodeType === 1 &&
    (isField(node) ? [node] : $$("textarea, input, select", node)).some((field) => !/^(checkbox|radio)$/.test(field.type) && isTyped(field));

  // Makes a node what another one is. What a person has typed, opened or focused stays.
  const morph = (old, fresh) => {
    if (old.nodeType !== 1) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    const isTheirs = (attribute) => attribute === "open" || (isField(old) && isTyped(old) && /^(value|checked)$/.test(attribute));
    for (const { name: attribute, value } of [...fresh.attributes]) {
      if (!isTheirs(attribute) && old.getAttribute(attribute) !== value) old.setAttribute(attribute, value);
    }
    for (const { name: attribute } of [...old.attributes]) {
      if (!isTheirs(attribute) && !fresh.hasAttribute(attribute)) old.removeAttribute(attribute);
    }
    if (!isField(old)) morphChildren(old, fresh);
    else if (!isTyped(old) && old.nodeName === "TEXTAREA" && old.defaultValue !== fresh.defaultValue) old.value = old.defaultValue = fresh.defaultValue;
  };

  const morphChildren = (old, fresh) => {
    const named = new Map([...old.children].filter(name).map((child) => [name(child), child]));
    let at = old.firstChild;
    for (const wanted of [...fresh.childNodes]) {
      const isLike = (node) => node.nodeType === wanted.nodeType && node.nodeName === wanted.nodeName;
      let found = name(wanted) ? named.get(name(wanted)) : at;
      while (found && !name(wanted) && (name(found) || !isLike(found))) found = found.nextSibling;
      if (found && isLike(found)) {
        if (found === at) at = found.nextSibling;
        else old.insertBefore(found, at);
        morph(found, wanted);
      } else {
        old.insertBefore(document.importNode(wanted, true), at);
      }
    }
    while (at) {
      const next = at.nextSibling;
      // Nobody loses a text because somebody else was faster.
      if (!hasTyped(at)) at.remove();
      at = next;
    }
  };

  const count = (kinds) => [...kinds].map(([kind, number]) => `${number} new ${kind}${number === 1 ? "" : "s"}`);

  // What is worth a word of the difference between two states of a page.
  const difference = (old, fresh) => {
    const asks = (root) => new Map($$("[data-ask]", root).map((row) => [row.dataset.ask, row]));
    const [before, after] = [asks(old), asks(fresh)];
    const kinds = new Map();
    for (const [key, row] of after) {
      if (!before.has(key)) kinds.set(row.dataset.kind, (kinds.get(row.dataset.kind) || 0) + 1);
    }
    const words = count(kinds);
    const ended = new Map($$("[data-ended]", fresh).map((row) => [row.dataset.ended, row.dataset.said]));
    for (const key of before.keys()) {
      if (!after.has(key) && ended.has(key)) words.push(ended.get(key));
    }
    const outcome = (root) => $("[data-outcome]", root)?.dataset.outcome || "";
    if (outcome(fresh) && outcome(fresh) !== outcome(old)) words.push(outcome(fresh));
    return words.join(". ");
  };

  const show = (fresh) => {
    const [old, now] = [main(), fresh.getElementById("main")];
    if (!old || !now) return;
    const words = difference(old, now);
    const [focused, index] = [document.activeElement, rows().indexOf(current())];
    document.title = fresh.title;
    morph(old, now);
    if (focused && focused !== document.activeElement && old !== focused) {
      const row = focused.isConnected ? focused : rows()[Math.min(index, rows().length - 1)];
      (row || old).focus({ preventScroll: true });
    }
    if (words) say(words);
  };

  let [isFetching, isWanted, hasEnded, isStale] = [false, false, false, false];

  const refresh = async () => {
    if (hasEnded || !main()?.dataset.live) return;
    isWanted = true;
    if (isFetching) return;
    isFetching = true;
    while (isWanted && !hasEnded) {
      isWanted = false;
      const request = await fetched(location.href);
      if (request.status === 401) {
        hasEnded = true;
        source?.close();
        say("You are signed out.", "/login", "Sign in");
      } else if (request.status !== 200 || !request.response?.getElementById("main")) {
        // What is there stays: an older page is worth more than one that says that something is wrong.
        const why = request.response && $("#main p", request.response)?.textContent;
        say(`This page could not be refreshed, and may be out of date.${why ? ` ${why}` : ""}`);
        isStale = true;
        if (request.status === 0 || request.status === 429 || request.status >= 500) setTimeout(refresh, AGAIN);
      } else {
        if (isStale) say("");
        isStale = false;
        show(request.response);
      }
      await new Promise((done) => setTimeout(done, PAUSE));
    }
    isFetching = false;
  };

  /* What tells the page that something has changed. */

  let [source, lost, hidden] = [null, 0, 0];

  const concerns = ({ project, kinds }) => {
    const { live, project: own } = main()?.dataset || {};
    if (!live || (own && own !== project)) return false;
    return kinds.includes("all") || live.split(" ").some((kind) => kinds.includes(kind));
  };

  const listen = () => {
    if (hasEnded || !main()?.dataset.live || document.hidden) return;
    if (source && source.readyState !== EventSource.CLOSED) return;
    // The stream begins after what the page already shows, and later after what was heard last.
    source = new EventSource(`/live?heard=${encodeURIComponent(main().dataset.heard || "")}`);
    source.onopen = () => {
      clearTimeout(lost);
      if (lost && !isStale) say("");
      lost = 0;
      document.documentElement.dataset.stream = "open";
    };
    source.addEventListener("changed", (event) => {
      if (concerns(JSON.parse(event.data))) refresh();
    });
    source.onerror = () => {
      delete document.documentElement.dataset.stream;
      if (!lost) lost = setTimeout(() => say("The connection is lost: this page may be out of date."), LOST);
      if (source.readyState === EventSource.CLOSED) {
        refresh();
        setTimeout(listen, AGAIN);
      }
    };
  };

  const wake = async () => {
    clearInterval(hidden);
    await refresh();
    listen();
  };

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return wake();
    source?.close();
    hidden = setInterval(refresh, HIDDEN);
  });
  addEventListener("online", wake);
  addEventListener("pageshow", (event) => event.persisted && wake());
  addEventListener("pagehide", () => source?.close());

  // On a narrow screen a menu is one line that scrolls.
  for (const place of $$("nav [aria-current]")) place.scrollIntoView({ block: "nearest", inline: "nearest" });

  /* The keyboard. */

  const rows = () => $$("[data-ask] a, [data-row] a[data-row-link]", main() || document);
  const current = () => rows().find((row) => row === document.activeElement || row.closest("li")?.contains(document.activeElement));

  const move = (by) => {
    const all = rows();
    if (!all.length) return;
    const index = all.indexOf(current());
    all[index < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, index + by))].focus();
  };

  // Leads to a part of an answer, and opens what hides it. What it does is pressed there, with Enter.
  const lead = (css) => {
    const target = $(css, main() || document);
    if (!target) return;
    const details = target.closest("details");
    if (details) details.open = true;
    target.focus();
    target.scrollIntoView({ block: "nearest" });
  };

  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    // The button stands on the last part of an effect only.
    a: () => lead("[data-key=a]"),
    d: () => lead("[data-key=d]"),
    e: () => lead("[data-key=e]"),
    x: () => current()?.closest("li")?.querySelector("input[type=checkbox]")?.click(),
    n: () => $("[data-key=n]", main())?.click(),
    i: () => location.assign("/"),
    "/": () => openPalette(),
    "?": () => openDialog("help"),
  };

  // The arrows go through a replay, and scroll everywhere else.
  const STEPS = { ArrowLeft: "[data-key=left]", ArrowRight: "[data-key=right]" };
  const stepOf = (event) => Object.hasOwn(STEPS, event.key) && !event.target.closest("[tabindex]") && $(STEPS[event.key], main() || document);

  const openDialog = (id) => {
    const dialog = document.getElementById(id);
    if (dialog && !dialog.open && !$("dialog[open]")) dialog.showModal();
    return dialog;
  };

  document.addEventListener("keydown", (event) => {
    const isText = /^(TEXTAREA|SELECT)$/.test(event.target.nodeName) || (event.target.nodeName === "INPUT" && event.target.type !== "checkbox");
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing && !isText && !$("dialog[open]") && Object.hasOwn(KEYS, event.key)) {
      event.preventDefault();
      KEYS[event.key]();
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey && !isText && !$("dialog[open]") && stepOf(event)) {
      event.preventDefault();
      stepOf(event).click();
    }
  });

  /* The palette: the page of the search, in a dialog. */

  const palette = document.getElementById("palette");
  const found = palette && $(".found", palette);
  let asked = 0;

  const openPalette = () => {
    const dialog = openDialog("palette");
    if (!dialog?.open) return;
    $("input", dialog).select();
    search();
  };

  const search = async () => {
    const number = ++asked;
    const request = await fetched(`/search?q=${encodeURIComponent($("input", palette).value)}`);
    if (number !== asked) return;
    const list = request.response && $(".found", request.response);
    found.replaceChildren(...(list ? [...list.childNodes].map((node) => document.importNode(node, true)) : []));
  };

  let typing = 0;
  palette?.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(search, PAUSE);
  });
  palette?.addEventListener("keydown", (event) => {
    const links = $$("a", found);
    const index = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      (links[index + (event.key === "ArrowDown" ? 1 : -1)] || $("input", palette)).focus();
    } else if (event.key === "Enter" && event.target.nodeName === "INPUT" && links.length) {
      event.preventDefault();
      links[0].click();
    }
  });

  // A quoted line stands behind what was written: so does the caret.
  const quoted = location.hash === "#text" && document.getElementById("text");
  if (quoted) {
    quoted.focus();
    quoted.setSelectionRange(quoted.value.length, quoted.value.length);
  }

  listen();
})();
