// Answers searches as the site does: sections as documents, the title weighing far more than the text.
// Arguments: the path of lunr.js. Standard input: {sections: [{page, title, text, boost}], searches: [...]}.
const lunr = require(process.argv[2]);
const { sections, searches } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const index = lunr(function () {
  this.ref("id");
  this.field("title", { boost: 1000 });
  this.field("text");
  sections.forEach((section, id) => this.add({ id, title: section.title, text: section.text }, { boost: section.boost }));
});
const pagesOf = (search) => {
  const pages = {};
  for (const { ref, score } of index.search(search.replace(/-/g, " "))) {
    const page = sections[ref].page;
    pages[page] = Math.max(pages[page] || 0, score);
  }
  return Object.keys(pages).sort((one, other) => pages[other] - pages[one]);
};
console.log(JSON.stringify(searches.map((search) => pagesOf(search).slice(0, 5))));
