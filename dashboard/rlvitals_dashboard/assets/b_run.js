/* The run page in the browser: when to ask for news, how to draw them, and one zoom for all panels. */
(function () {
  "use strict";
  const rlvitals = (window.rlvitals = window.rlvitals || {});
  const clientside = (window.dash_clientside = window.dash_clientside || {});
  const NARROW = 560;
  let busySince = 0;

  function same(a, b) {
    return JSON.stringify(a || null) === JSON.stringify(b || null);
  }

  function viewFromUrl() {
    const from = parseInt(rlvitals.asked("from"), 10);
    const to = parseInt(rlvitals.asked("to"), 10);
    return Number.isFinite(from) && Number.isFinite(to) && to > from ? [from, to] : null;
  }

  /* A tick is let through when nothing is under way and someone looks. */
  function passes(busy) {
    if (document.hidden) return false;
    if (busy && Date.now() - busySince < 15000) return false;
    busySince = Date.now();
    return true;
  }

  function triggered() {
    return (window.dash_clientside.callback_context.triggered || [])
      .filter((t) => t.value !== null && t.value !== undefined);
  }

  function rangeOf(relayout) {
    if (!relayout) return undefined;
    if (relayout["xaxis.autorange"]) return null;
    const ends = relayout["xaxis.range"] || [relayout["xaxis.range[0]"], relayout["xaxis.range[1]"]];
    if (!Number.isFinite(ends[0]) || !Number.isFinite(ends[1])) return undefined;
    const from = Math.max(0, Math.floor(ends[0]));
    return [from, Math.max(from + 2, Math.ceil(ends[1]))];
  }

  function brighter(trace, colours) {
    const change = (part) => part && colours[part.color] ? Object.assign({}, part, { color: colours[part.color] }) : part;
    if (!Object.keys(colours).length) return trace;
    return Object.assign({}, trace, trace.line && { line: change(trace.line) }, trace.marker && { marker: change(trace.marker) });
  }

  /* On a narrow page a legend wraps; it must not cover what stands above the plot. */
  function moreLegendRows(traces) {
    const width = window.innerWidth - 90;
    let rows = 0, used = 0;
    for (const trace of traces.filter((t) => t.showlegend !== false)) {
      const needs = 46 + 6 * trace.name.length;
      if (used && used + needs > width) { rows += 1; used = 0; }
      used += needs;
    }
    return rows;
  }

  function dressed(figure, theme, view, narrow, touch) {
    const layout = Object.assign({}, figure.layout, { template: theme.template });
    const range = view || figure.layout.xaxis.range;
    layout.xaxis = Object.assign({}, figure.layout.xaxis, { range: range });
    if (view) layout.xaxis.uirevision = `${layout.uirevision}:${view[0]}:${view[1]}`;
    if (narrow) {
      layout.annotations = (layout.annotations || [])
        .map((a) => Object.assign({}, a, { text: "▲◆●".includes(a.text[0]) ? a.text[0] : "" }));
      layout.margin = Object.assign({}, layout.margin, { t: layout.margin.t + moreLegendRows(figure.data) * 19 });
      layout.xaxis.nticks = 5;
      layout.margin = Object.assign({}, layout.margin, { l: 44, r: 8 });
    }
    if (touch) layout.dragmode = false;
    return { data: figure.data.map((trace) => brighter(trace, theme.brighter)), layout: layout };
  }

  clientside.rlvitals = Object.assign(clientside.rlvitals || {}, {
    gate: function (ticks, view, nudge, more, busy) {
      const by = triggered().map((t) => t.prop_id);
      const asked = by.some((id) => !id.startsWith("run-tick"));
      if (!asked && !passes(busy)) return window.dash_clientside.no_update;
      busySince = Date.now();
      return Date.now();
    },

    draw: function (sent, view, theme, more, themes) {
      const ids = window.dash_clientside.callback_context.outputs_list.map((o) => o.id.panel);
      const none = window.dash_clientside.no_update;
      if (!sent) return ids.map(() => none);
      const chosen = themes[theme || document.documentElement.dataset.theme];
      const touch = window.matchMedia("(pointer: coarse)").matches;
      return ids.map((id) => {
        const figure = sent.figures[id];
        return figure ? dressed(figure, chosen, view, window.innerWidth < NARROW, touch) : none;
      });
    },

    view: function (relayouts, from, to, reset, zooms, current, seen) {
      const none = window.dash_clientside.no_update;
      const by = triggered();
      let chosen;
      if (!by.length) chosen = viewFromUrl();
      for (const { prop_id: id, value } of by) {
        if (id.includes('"type":"graph"')) chosen = rangeOf(value);
        else if (id.startsWith("range-reset")) chosen = null;
        else if (id.startsWith("range-")) {
          const newest = (seen && seen.step) || 0;
          const start = parseInt(from, 10) || 0;
          const end = parseInt(to, 10) || Math.max(newest, start + 2);
          chosen = !from && !to ? null : end > start ? [start, end] : undefined;
        } else if (id.includes('"type":"zoom"')) {
          const ends = JSON.parse(id.slice(0, id.lastIndexOf("."))).range.split(":").slice(-2).map(Number);
          const pad = Math.max(10, Math.round((ends[1] - ends[0]) * 0.25));
          chosen = [Math.max(0, ends[0] - pad), ends[1] + pad];
        }
      }
      if (chosen === undefined || (by.length && same(chosen, current))) return [none, none, none];
      if (by.length) rlvitals.query({ from: chosen && chosen[0], to: chosen && chosen[1] });
      return [chosen, chosen ? String(chosen[0]) : "", chosen ? String(chosen[1]) : ""];
    },

    chooseStep: function () {
      const none = window.dash_clientside.no_update;
      const [seen, current] = Array.from(arguments).slice(-2);
      const first = triggered().find((t) => !t.prop_id.startsWith("control-seen"));
      if (!first) return current === undefined || current === null ? (seen && seen.step) ?? none : none;
      if (first.prop_id.startsWith("groups-newest")) return seen.step ?? none;
      const points = first.value.points || [];
      return points.length ? Math.round(points[0].x) : none;
    },

    wish: function (focal, avspo, seen, wish) {
      const none = window.dash_clientside.no_update;
      const by = triggered().map((t) => t.prop_id.split(".")[0]);
      const news = seen && seen.version !== wish.version;
      const settled = news
        ? { focal: !!seen.focal, avspo: !!seen.avspo, version: seen.version }
        : Object.assign({}, wish);
      // Clicks that come close together arrive as one call: none of them may be lost.
      const clicked = ["focal", "avspo"].filter((name) => by.includes(`control-${name}`));
      for (const name of clicked) settled[name] = !settled[name];
      if (!news && !clicked.length) return [none, none];
      return [settled, news ? seen.gamma || none : none];
    },

    showWish: function (wish, seen) {
      const able = (seen && seen.abilities) || [];
      const shut = !!(seen && seen.blocked);
      return [
        String(!!wish.focal),
        String(!!wish.avspo),
        shut || !able.includes("focal"),
        shut || !able.includes("avspo"),
        shut || !(wish.focal || wish.avspo),
        shut || !(seen && seen.active),
      ];
    },
  });
  rlvitals.passes = passes;

  /* One crosshair: the step under the pointer is shown in every panel. */
  let crossed = [null, null];

  function cross(step, source) {
    crossed = [step, source];
    for (const plot of document.querySelectorAll(".run-page .js-plotly-plot")) {
      let hair = plot.querySelector(":scope > .crosshair");
      if (!hair) {
        hair = document.createElement("div");
        hair.className = "crosshair";
        plot.appendChild(hair);
      }
      const layout = plot._fullLayout;
      const at = layout && layout.xaxis && step !== null ? layout.xaxis.l2p(step) : -1;
      const inside = plot !== source && at >= 0 && at <= (layout ? layout.xaxis._length : 0);
      hair.style.display = inside ? "block" : "none";
      if (inside) {
        hair.style.left = `${layout._size.l + at}px`;
        hair.style.top = `${layout._size.t}px`;
        hair.style.height = `${layout._size.h}px`;
      }
    }
  }

  function listen() {
    for (const plot of document.querySelectorAll(".run-page .js-plotly-plot")) {
      if (plot._rlvitals || !plot.on) continue;
      plot._rlvitals = true;
      plot.on("plotly_hover", (event) => cross(event.points[0].x, plot));
      plot.on("plotly_unhover", () => cross(null, plot));
      plot.on("plotly_afterplot", () => cross(...crossed));
    }
  }
  window.setInterval(listen, 1000);
})();
