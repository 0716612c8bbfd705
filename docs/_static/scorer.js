// What people do comes before how it is built: pages below guides in the search, by the name of their folder or page.
var INTERNALS = /^api\/|^changelog$/;
var Scorer = {
  score: ([page, , , , score]) => (INTERNALS.test(page) ? score - 30 : score),
  objNameMatch: 45, // a class or method, by its whole name
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

var wordsOf = (text) => {
  const stemmer = new Stemmer();
  const words = splitQuery(text.toLowerCase()).filter((word) => !stopwords.has(word) && !/^\d+$/.test(word));
  return new Set(words.map((word) => stemmer.stemWord(word)));
};

// Sphinx finds pages that have each word of a query. A pasted log line has the words of a message and others; a question
// has words that no page has. So titles and entries of the index are found whose words the query has, the longest of them
// first, and, if nothing is, the pages that have its rarest words.
// This is a part of language_data.js, which the page of the search loads after searchtools.js.
{
  const search = Search.performTermsSearch;
  Search.performTermsSearch = (query, excluded) => {
    const { alltitles, docnames, filenames, indexentries, terms, titles, titleterms } = Search._index;
    const found = search(query, excluded);
    Search.phrases ??= [...Object.entries(alltitles), ...Object.entries(indexentries)].map((one) => [...one, wordsOf(one[0])]);
    for (const [title, places, words] of Search.phrases) {
      const there = [...words].filter((word) => query.has(word)).length;
      if (there < 2 || there < words.size * (there > 2 ? 0.7 : 1)) continue;
      for (const [file, id] of places) {
        const isWhole = there === words.size && there === query.size;
        const score = 50 + 4 * there - words.size + (isWhole ? 30 : 0);
        found.push([docnames[file], title, id ? "#" + id : "", null, score, filenames[file], "title"]);
      }
    }
    if (found.length) return found;
    const weights = new Map();
    for (const word of query) {
      const files = new Set([terms, titleterms].flatMap((index) => (Object.hasOwn(index, word) ? index[word] : [])));
      for (const file of files) weights.set(file, (weights.get(file) ?? 0) + Math.log(docnames.length / files.size));
    }
    for (const [file, weight] of weights)
      found.push([docnames[file], titles[file], "", null, 10 * weight, filenames[file], "text"]);
    return found;
  };
  // An error begins with its problem, the title of a section, or with the address of that section. A line of a log has
  // other words in brackets, too.
  const perform = Search._performSearch;
  Search._performSearch = (query, ...parsed) => {
    const found = perform(query, ...parsed), { alltitles, docnames, filenames } = Search._index;
    const named = query.toLowerCase().trim().matchAll(/(?:^|\[(?:\S*#)?)([a-z]+(?:-[a-z]+)+)(?:\]|$)/g);
    const names = [...named].map((match) => match[1]);
    const title = names.find((name) => Object.hasOwn(alltitles, name));
    for (const [file, id] of alltitles[title] ?? [])
      found.push([docnames[file], title, "#" + id, null, 1000, filenames[file], "title"]);
    return found;
  };
}
