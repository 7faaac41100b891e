(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("data").textContent);
  var ribbon = document.querySelector(".ribbon"), tip = document.getElementById("tip"), line = document.getElementById("line");
  if (!ribbon || !data.columns.length) return;
  function time(s) {
    return s >= 1 ? s.toFixed(2) + " s" : s >= 1e-3 ? (s * 1e3).toFixed(1) + " ms" : (s * 1e6).toFixed(0) + " µs";
  }
  function place(x, y) {
    var w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - w - 6)) + "px";
    tip.style.top = (y + h + 24 > innerHeight ? y - h - 12 : y + 16) + "px";
  }
  function tell(text, x, y) {
    tip.textContent = text;
    tip.style.display = "block";
    place(x, y);
  }
  function hide() {
    tip.style.display = line.style.display = "none";
  }
  function show(event) {
    var plot = ribbon.querySelector(".plot").getBoundingClientRect();
    var share = (event.clientX - plot.left) / plot.width;
    if (share < 0 || share >= 1) return hide();
    var at = Math.floor(share * data.columns.length), column = data.columns[at];
    var from = at * data.width, text = "at " + time(from);
    column.forEach(function (part, cause) {
      if (part) text += "\n" + part / 10 + " % " + data.causes[cause];
    });
    if (!column.some(Boolean)) text += "\nno wait";
    ["memory", "memory of workers"].forEach(function (name, which) {
      var mib = data.memory[at][which];
      if (mib) text += "\n" + (mib < 1024 ? mib + " MiB " : (mib / 1024).toFixed(1) + " GiB ") + name;
    });
    var near = data.waits.filter(function (wait) {
      return wait.at < from + data.width && wait.at + wait.wait > from;
    })[0];
    if (near) text += "\n\n" + near.text;
    line.style.left = event.clientX - ribbon.getBoundingClientRect().left + "px";
    line.style.display = "block";
    tell(text, event.clientX, event.clientY);
  }
  ribbon.addEventListener("pointermove", show);
  ribbon.addEventListener("pointerdown", show);
  ribbon.addEventListener("pointerleave", hide);
  document.querySelectorAll("[data-wait]").forEach(function (row) {
    row.addEventListener("pointerenter", function () {
      var wait = data.waits[row.dataset.wait], plot = ribbon.querySelector(".plot").getBoundingClientRect();
      line.style.left = plot.left - ribbon.getBoundingClientRect().left + plot.width * wait.place + "px";
      line.style.display = "block";
    });
    row.addEventListener("pointerleave", hide);
  });
})();
