{# Sorts a table by the column whose head is clicked; the page reads the same without it. #}
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const value = (row, n) => { const cell = row.cells[n], sort = cell.dataset.sort ?? cell.textContent.replace(/,/g, "").trim(); return sort === "" || isNaN(sort) ? sort : +sort; };
  heads.forEach((head, n) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(b).localeCompare(String(a));
      body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * compare(value(a, n), value(b, n))));
    });
  });
}
