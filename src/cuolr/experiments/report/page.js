"use strict";
// Show one measure at a time, in tables, plots and text.
for (const input of document.querySelectorAll(".measures input")) {
  input.addEventListener("change", () => {
    for (const part of document.querySelectorAll("[data-measure]")) part.hidden = part.dataset.measure !== input.value;
  });
}
// A click on a column head sorts by it, highest first; a second click reverses the order. Rows without a value stay last.
for (const button of document.querySelectorAll("table.sortable thead button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), column = head.cellIndex, body = head.closest("table").tBodies[0];
    const ascending = column === 0 ? head.ariaSort !== "ascending" : head.ariaSort === "descending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const sign = ascending ? 1 : -1, key = (row) => row.cells[column].dataset.value;
    const compare = (a, b) => {
      if (column === 0) return sign * a.cells[0].textContent.localeCompare(b.cells[0].textContent, "en", { numeric: true });
      if (key(a) === "" || key(b) === "") return (key(a) === "") - (key(b) === "");
      return sign * (Number(key(a)) - Number(key(b)));
    };
    body.append(...[...body.rows].sort(compare));
  });
}
