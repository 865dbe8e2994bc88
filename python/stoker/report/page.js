"use strict";
/* Draws the charts of the page. What went wrong is counted on the root element, for tests. */
(function () {
  var root = document.documentElement;
  var drawn = [];
  var A4 = { whole: 680, half: 328 }; /* CSS pixels within the margins of a printed page */

  function count(name) {
    root.dataset[name] = String(Number(root.dataset[name] || 0) + 1);
  }
  root.dataset.errors = "0";
  root.dataset.refused = "0";
  root.dataset.drawn = "0";
  window.addEventListener("error", function () { count("errors"); });
  window.addEventListener("unhandledrejection", function () { count("errors"); });
  document.addEventListener("securitypolicyviolation", function () { count("refused"); });

  function draw(chart) {
    var place = document.getElementById(chart.id);
    var config = { displayModeBar: false, responsive: true, doubleClick: "reset" };
    if (window.matchMedia("(pointer: fine)").matches && !chart.layout.xaxis?.fixedrange)
      chart.layout.dragmode = "zoom"; /* on a touch screen a drag moves the page */
    return window.Plotly.newPlot(place, chart.data, chart.layout, config).then(function () {
      drawn.push(place);
      count("drawn");
    });
  }

  function drawAll() {
    var charts = JSON.parse(document.getElementById("charts").textContent);
    root.dataset.charts = String(charts.length);
    charts.reduce(function (before, chart) {
      return before.then(function () { return draw(chart); });
    }, Promise.resolve()).then(function () { root.dataset.done = "1"; });
  }

  function resize(sizeOf) {
    drawn.forEach(function (place) {
      place.dataset.height = place.dataset.height || place.layout.height;
      var size = sizeOf(place, Number(place.dataset.height));
      place.style.height = size.height + "px";
      window.Plotly.relayout(place, size);
    });
  }
  window.addEventListener("beforeprint", function () {
    resize(function (place, height) {
      var kind = place.parentElement.classList.contains("half") ? "half" : "whole";
      return { width: A4[kind], height: Math.round(height * (kind === "half" ? 0.75 : 0.9)) };
    });
  });
  window.addEventListener("afterprint", function () {
    resize(function (place, height) { return { width: null, height: height, autosize: true }; });
  });
  document.addEventListener("DOMContentLoaded", drawAll);
})();
