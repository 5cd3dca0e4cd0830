/* How a query in Chinese is cut into words: goes in front of Material's search worker (search.py).

   Chinese has no spaces; the index knows the words of the book as jieba cut them. From left to right the longest
   known word is taken; what is no word is passed over, except at the end, where the reader may still be typing. */
const segmented = (query, index) => {
  // A name of code is one word, and may be a tag, which search.py begins with U+2060.
  if (query.includes("_")) return [query, `\u2060${query}`];
  const words = [];
  let unknown = 0; // where the part begins that is no word so far
  for (let at = 0; at < query.length; ) {
    let end = query.length;
    while (end > at && !(query.slice(at, end) in index)) end--;
    if (end > at) words.push(query.slice(at, end));
    at = end > at ? (unknown = end) : at + 1;
  }
  if (unknown < query.length) words.push(query.slice(unknown));
  return words;
};

// The words of a query without those that the index leaves out; the last one may still be a part of another.
// What a formula brings along, as in 10000^(2i/d) and +m, would be lunr's signs for other things.
const meant = (query) => {
  asked = bare(query);
  return query
    .replace(/[+^~]/g, " ")
    .split(/\s+/)
    .filter((word, at, all) => at === all.length - 1 || lunr.stopWordFilter(word.toLowerCase()))
    .join(" ");
};

let asked = ""; // the query as it was entered
const bare = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");

/* How much more an entry counts than lunr says. Tags put a chapter above all else, which is right for a word or two.
   Who enters three or more wants the claim or the exercise that is called so, if four words of five are in its name:
   it comes before the chapters, unless they are the name of one. So does a name that has been entered whole.

   `terms` has the words of the query, and `matches` for each word of the index that they met, in which fields. */
const named = (terms, matches, entry) => {
  const words = Object.keys(terms);
  if (!entry.location.includes("#")) {
    const name = /^\w+\.html$/.test(entry.location) && bare(entry.title).startsWith(asked);
    return name && words.length > 2 ? 1e15 : 1;
  }
  if (!/^(claims\.html#row-|exercises\/\w+\.html#\w+-)/.test(entry.location)) return 1;
  if (bare(entry.title) === asked) return 1e15;
  const inName = Object.keys(matches).filter((match) => matches[match].title);
  const met = words.filter((word) => inName.some((match) => match.startsWith(word)));
  if (met.length < 0.8 * words.length) return 1;
  if (words.length > 2) return 1e12;
  const own = entry.title.toLowerCase().split(lunr.tokenizer.separator).filter(lunr.stopWordFilter);
  const said = own.filter((word) => !/^(\p{sc=Han}|[^\p{L}\p{N}]*)$/u.test(word)); // not 的, 就, ⋅
  return words.length === 2 && new Set(said).size <= 2 ? 1e12 : 1;
};
