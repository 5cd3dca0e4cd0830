/* Fetches a figure that moves when the reader comes near it, or has an address with a state of it. */
const sheet = (name) =>
  new Promise((loaded) => {
    const link = document.createElement("link");
    Object.assign(link, { rel: "stylesheet", href: new URL(`${name}.css`, import.meta.url), onload: loaded });
    document.head.append(link);
  });
const styled = sheet("live");
const fetched = async (figure) => {
  const name = figure.localName.slice("live-".length);
  await Promise.all([styled, name === "word-order" && sheet(name)]); // that of the front page, which chapters need not fetch
  await import(`./${name}.js`);
};
const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      fetched(target);
    }
  },
  { rootMargin: "100%" },
);
for (const figure of document.querySelectorAll(".live")) {
  if (location.hash.includes(`${figure.localName.slice("live-".length)}.`)) fetched(figure);
  else near.observe(figure);
}
