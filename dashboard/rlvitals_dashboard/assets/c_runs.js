/* The list of runs in the browser: cells of the grid, search, and the grid's colours. */
(function () {
  "use strict";
  const rlvitals = (window.rlvitals = window.rlvitals || {});
  const cells = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {});
  const clientside = (window.dash_clientside = window.dash_clientside || {});
  const NARROW = 640;
  const WIDE_ONLY = ["state", "project", "step", "spark", "success", "tags", "seen"];
  const h = (...args) => window.React.createElement(...args);

  cells.RunState = ({ data }) =>
    h("span", { className: `state state-${data.state}` },
      h("span", { className: "shape", "aria-hidden": "true" }, data.shape), data.state);

  cells.RunName = ({ data }) =>
    h("a", {
      href: data.href,
      title: data.verdict || data.name,
      className: "run-link",
      onClick: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
        event.preventDefault();
        window.history.pushState({}, "", data.href);
        window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
        window.scrollTo(0, 0);
      },
    }, data.name);
  const link = cells.RunName;
  cells.RunName = (props) => window.innerWidth >= NARROW ? link(props)
    : h("div", { className: "two-lines" }, link(props), cells.RunState(props));

  cells.Incidents = ({ data }) => {
    if (!data.incidents.length) return h("span", { className: "muted" }, "none");
    const [first, ...others] = data.incidents;
    return h("span", { title: data.incidents.map((i) => `${i[1]}: ${i[3]}`).join("\n") },
      h("span", { className: `severity severity-${first[0]}` }, first[1]), " ", window.innerWidth < NARROW ? "" : first[2],
      others.length ? h("span", { className: "muted" }, ` +${others.length}`) : null);
  };

  cells.Sparkline = ({ value }) => {
    const known = (value || []).map((v, i) => [i, v]).filter((p) => p[1] !== null);
    if (known.length < 2) return h("span", { className: "muted" }, "–");
    const width = 96, height = 24, last = value.length - 1;
    const y = (v) => height - 2 - (height - 4) * v;
    const points = known.map(([i, v]) => `${((width - 4) * i / last + 2).toFixed(1)},${y(v).toFixed(1)}`).join(" ");
    const [lastIndex, lastValue] = known[known.length - 1];
    return h("svg", { width, height, viewBox: `0 0 ${width} ${height}`, className: "cell-spark", role: "img",
        "aria-label": `ACR from ${Math.round(known[0][1] * 100)}% to ${Math.round(lastValue * 100)}%` },
      h("line", { x1: 0, x2: width, y1: y(0), y2: y(0), className: "base" }),
      h("polyline", { points, fill: "none" }),
      h("circle", { cx: (width - 4) * lastIndex / last + 2, cy: y(lastValue), r: 2 }));
  };

  cells.Ago = ({ value }) => h("time", { className: "ago num", dateTime: value }, rlvitals.ago(value));

  const MARKS = {
    all_fail: ["✕", "all fail"], all_pass: ["✓", "all pass"], constant: ["=", "constant"], live: ["●", "live"],
    shaping_only: ["~", "shaping only"], singleton: ["1", "group of one"], dropped: ["–", "dropped"],
  };
  cells.GroupState = ({ value }) => {
    const [shape, word] = MARKS[value] || ["?", value];
    return h("span", { className: `group-state group-${value}` },
      h("span", { className: "shape", "aria-hidden": "true" }, shape), word);
  };

  clientside.rlvitals = Object.assign(clientside.rlvitals || {}, {
    fitRuns: async function (rows) {
      if (!rows || !rows.length || window.innerWidth >= NARROW) return window.dash_clientside.no_update;
      const grid = await window.dash_ag_grid.getApiAsync("runs-grid");
      grid.setColumnsVisible(WIDE_ONLY, false);
      grid.setGridOption("rowHeight", 54);
      return window.dash_clientside.no_update;
    },
    gateRuns: function (ticks, busy) {
      return rlvitals.passes(busy) ? Date.now() : window.dash_clientside.no_update;
    },
    /* A grid that comes back with its page has forgotten its filter, so new rows ask again. */
    filterRuns: async function (search, project, rows, options) {
      const none = window.dash_clientside.no_update;
      // Rows may be here before the grid is.
      const grid = await window.dash_ag_grid.getApiAsync("runs-grid");
      const current = grid.getFilterModel() || {};
      const filters = Object.assign({}, current);
      delete filters.project;
      if (project) filters.project = { filterType: "text", type: "equals", filter: project };
      rlvitals.query({ q: search, project: project });
      const sought = search || "";
      return [
        JSON.stringify(filters) === JSON.stringify(current) ? none : filters,
        sought === options.quickFilterText ? none : Object.assign({}, options, { quickFilterText: sought }),
      ];
    },
  });
})();
