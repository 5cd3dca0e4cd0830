/* Fetches a figure that moves when the reader comes near it, or has an address with a state of it. */
const styled = new Promise((loaded) => {
  const sheet = document.createElement("link");
  Object.assign(sheet, { rel: "stylesheet", href: new URL("live.css", import.meta.url), onload: loaded });
  document.head.append(sheet);
});
const fetched = async (figure) => {
  await styled;
  await import(`./${figure.localName.slice("live-".length)}.js`);
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
