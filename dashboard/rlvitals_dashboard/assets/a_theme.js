/* What both pages share: theme, ages that keep ticking, and the view kept in the URL. */
(function () {
  "use strict";
  const rlvitals = (window.rlvitals = window.rlvitals || {});

  rlvitals.query = function (changes) {
    const url = new URL(window.location.href);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "") url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    if (url.href !== window.location.href) window.history.replaceState(window.history.state, "", url);
  };
  rlvitals.asked = (name) => new URLSearchParams(window.location.search).get(name);

  rlvitals.ago = function (moment) {
    const then = Date.parse(moment);
    if (!Number.isFinite(then)) return "–";
    const seconds = Math.max(0, Math.floor((Date.now() - then) / 1000));
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
      if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
    }
    return `${seconds} s ago`;
  };

  function tick() {
    for (const node of document.querySelectorAll("time.ago")) {
      const text = rlvitals.ago(node.dateTime);
      if (node.textContent !== text) node.textContent = text;
    }
  }
  window.setInterval(tick, 500);

  const clientside = (window.dash_clientside = window.dash_clientside || {});
  clientside.rlvitals = Object.assign(clientside.rlvitals || {}, {
    theme: function (clicks, current) {
      const root = document.documentElement;
      if (!clicks) return root.dataset.theme;
      const chosen = (current || root.dataset.theme) === "dark" ? "light" : "dark";
      root.dataset.theme = chosen;
      try { window.localStorage.setItem("rlvitals-theme", chosen); } catch (e) { /* private mode */ }
      if (rlvitals.asked("theme")) rlvitals.query({ theme: chosen });
      return chosen;
    },
  });
})();
