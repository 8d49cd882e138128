"use strict";
(() => {
  const data = JSON.parse(document.getElementById("gap-data").textContent);
  const chart = document.getElementById("gap-chart");
  const readout = document.getElementById("gap-readout");
  const places = data.first.length;
  const colour = (index) => `var(--series-${index % 3})`;
  const grouped = (number) => number.toLocaleString("en-US");
  const edge = { left: 62, right: 14, top: 16, bottom: 46 + 6 * data.series.length };
  let logarithmic = false;

  const brief = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size < 1e-3 || size >= 1e5 ? value.toExponential(1) : String(Number(value.toPrecision(4)));
    return text.replaceAll("-", "−");
  };

  const make = (parent, name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };

  const step = (span, count) => {
    const power = 10 ** Math.floor(Math.log10(span / count));
    return [1, 2, 5, 10].map((factor) => factor * power).find((size) => span / size <= count) ?? span;
  };

  const scale = (inner) => {
    const values = data.series.flatMap((series) => series.max.concat(series.mean)).filter((value) => value > 0);
    const top = values.reduce((a, b) => Math.max(a, b), 0);
    if (top === 0) return { y: () => inner, ticks: [0] };
    if (!logarithmic) {
      const size = step(top, 5);
      const ticks = Array.from({ length: Math.floor((top * 1.05) / size) + 1 }, (_, at) => at * size);
      return { y: (value) => inner * (1 - value / (top * 1.05)), ticks };
    }
    const lowest = Math.max(values.reduce((a, b) => Math.min(a, b), top), top * 1e-8);
    const [low, high] = [Math.floor(Math.log10(lowest)), Math.ceil(Math.log10(top) + 1e-9)];
    const every = Math.max(1, Math.ceil((high - low) / 6));
    const ticks = [];
    for (let power = low; power <= high; power += every) ticks.push(10 ** power);
    const y = (value) => inner * (1 - (Math.log10(Math.max(value, 10 ** low)) - low) / Math.max(high - low, 1));
    return { y, ticks };
  };

  const axes = (plot, width, inner, x, { y, ticks }) => {
    for (const tick of ticks) {
      make(plot, "line", { x1: 0, x2: width, y1: y(tick), y2: y(tick), stroke: "var(--faint)" });
      make(plot, "text", { x: -8, y: y(tick) + 4, "text-anchor": "end" }, brief(tick));
    }
    const below = inner + 18 + 6 * data.series.length;
    const size = Math.max(1, step(data.tokens, Math.max(2, width / 110)));
    for (let token = 0; token < data.tokens; token += size) {
      make(plot, "text", { x: x(token / data.step), y: below, "text-anchor": "middle" }, grouped(token));
    }
    make(plot, "text", { x: width, y: below + 16, "text-anchor": "end" }, "sampled token, in file order →");
    make(plot, "text", { x: -edge.left + 2, y: -5 }, "nats");
  };

  const dots = (plot, series, values, x, y, index, look) => {
    const path = values.map((value, at) => (value === null ? "" : `M${x(at).toFixed(1)} ${y(value).toFixed(1)}h0`)).join("");
    make(plot, "path", { d: path, fill: "none", stroke: colour(index), "stroke-linecap": "round", ...look });
  };

  const line = (plot, values, x, y, index) => {
    let open = false;
    let path = "";
    values.forEach((value, at) => {
      if (value !== null) path += `${open ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      open = value !== null;
    });
    make(plot, "path", { d: path, fill: "none", stroke: colour(index), "stroke-width": 1.4, "stroke-linejoin": "round" });
  };

  const untrained = (plot, series, x, inner, index) => {
    let start = null;
    for (let at = 0; at <= places; at += 1) {
      const none = at < places && series.trained[at] === 0;
      if (none && start === null) start = at;
      if (!none && start !== null) {
        const left = x(start - 0.5);
        const box = { x: left, y: inner + 4 + 6 * index, width: Math.max(x(at - 0.5) - left, 1), height: 3, fill: colour(index) };
        make(make(plot, "rect", box), "title", {}, `not trained by ${series.name}`);
        start = null;
      }
    }
  };

  const evictions = (plot, inner, x) => {
    for (const mark of data.marks) {
      const at = x(mark.at / data.step - 0.5);
      const group = make(plot, "g", { class: "eviction" });
      make(group, "line", { x1: at, x2: at, y1: 0, y2: inner, stroke: "var(--eviction)", "stroke-opacity": 0.7, "stroke-dasharray": "4 3" });
      make(group, "path", { d: `M${at - 4} -6h8l-4 6z`, fill: "var(--eviction)" });
      make(group, "rect", { x: at - 5, y: -8, width: 10, height: inner + 8, fill: "transparent" });
      make(group, "title", {}, mark.label);
    }
  };

  const tell = (at) => {
    const [generation, offset] = data.first[at];
    const start = at * data.step;
    const end = Math.min(start + data.step, data.tokens);
    readout.replaceChildren();
    const say = (text, strong) => {
      const element = document.createElement(strong ? "b" : "span");
      element.textContent = text;
      readout.append(element);
    };
    if (end - start === 1) say(`token ${grouped(start)}, generation ${generation}, offset ${offset}`);
    else say(`tokens ${grouped(start)} to ${grouped(end - 1)}, from generation ${generation}, offset ${offset}`);
    data.series.forEach((series) => {
      say(` · ${series.name} `);
      if (series.max[at] === null) return say("not trained", true);
      say(end - start === 1 ? brief(series.max[at]) : `mean ${brief(series.mean[at])}, max ${brief(series.max[at])}`, true);
      say(` (signed ${brief(series.signed[at])})`);
    });
    const before = data.marks.filter((mark) => mark.at < end).at(-1);
    if (before) {
      readout.append(document.createElement("br"));
      say(`last eviction in the file: ${before.label}`);
    }
  };

  const hover = (svg, plot, width, inner, x) => {
    const hair = make(plot, "line", { y1: 0, y2: inner, stroke: "var(--ink)", "stroke-opacity": 0.45, visibility: "hidden" });
    svg.addEventListener("pointermove", (event) => {
      const across = event.clientX - svg.getBoundingClientRect().left - edge.left;
      const at = Math.min(places - 1, Math.max(0, Math.round((across / width) * places - 0.5)));
      hair.setAttribute("x1", x(at));
      hair.setAttribute("x2", x(at));
      hair.setAttribute("visibility", "visible");
      tell(at);
    });
    svg.addEventListener("pointerleave", () => hair.setAttribute("visibility", "hidden"));
  };

  const draw = () => {
    const [outer, height] = [chart.clientWidth, chart.clientHeight];
    const width = Math.max(outer - edge.left - edge.right, 50);
    const inner = height - edge.top - edge.bottom;
    chart.replaceChildren();
    const svg = make(chart, "svg", { viewBox: `0 0 ${outer} ${height}`, role: "img", "aria-label": "Gap of each layout along the rollout" });
    const plot = make(svg, "g", { transform: `translate(${edge.left} ${edge.top})` });
    const x = (at) => ((at + 0.5) / places) * width;
    const fit = scale(inner);
    axes(plot, width, inner, x, fit);
    evictions(plot, inner, x);
    const size = Math.min(6, Math.max(2.2, width / places));
    data.series.forEach((series, index) => {
      const look = data.step === 1 ? { "stroke-width": size, "stroke-opacity": 0.85 } : { "stroke-width": 2.2, "stroke-opacity": 0.35 };
      dots(plot, series, series.max, x, fit.y, index, look);
      if (data.step > 1) line(plot, series.mean, x, fit.y, index);
      untrained(plot, series, x, inner, index);
    });
    hover(svg, plot, width, inner, x);
  };

  const legend = document.getElementById("gap-legend");
  const explain = (mark, text) => {
    const entry = document.createElement("span");
    entry.append(mark, text);
    legend.append(entry);
  };
  data.series.forEach((series, index) => {
    const mark = document.createElement("i");
    mark.style.background = colour(index);
    explain(mark, data.step === 1 ? series.name : `${series.name}: dots are maxima of ${data.step} tokens, the line their mean`);
  });
  if (data.marks.length > 0) {
    const mark = document.createElement("i");
    mark.className = "line";
    mark.style.background = "var(--eviction)";
    explain(mark, "eviction");
  }
  for (const input of document.querySelectorAll("input[name=scale]")) {
    input.addEventListener("change", () => {
      logarithmic = document.querySelector("input[name=scale]:checked").value === "log";
      draw();
    });
  }
  new ResizeObserver(draw).observe(chart);
  draw();
})();
