// What people do comes before how it is built: pages below guides in the search, by the name of their folder or page.
var INTERNALS = /^(adr|api)\/|^(architecture|changelog|contributing|releasing)$/;
var Scorer = {
  score: ([page, , , , score]) => (INTERNALS.test(page) ? score - 30 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
