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
const meant = (query) =>
  query
    .split(/\s+/)
    .filter((word, at, all) => at === all.length - 1 || lunr.stopWordFilter(word.toLowerCase()))
    .join(" ");
