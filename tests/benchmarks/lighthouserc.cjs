// What Lighthouse says of the built site. Needs Node 18.20 or later and a Chromium; run it where nothing else runs:
//   .venv/bin/mkdocs build
//   npx --yes @lhci/cli@0.15 autorun --config=tests/benchmarks/lighthouserc.cjs
//   DEVICE=desktop npx --yes @lhci/cli@0.15 autorun --config=tests/benchmarks/lighthouserc.cjs
// Reports and a table of the scores (manifest.json) are in dist/lighthouse. Exit status 1 where a bound is missed.
const desktop = process.env.DEVICE === "desktop";
const pages = ["index.html?stay", ...["en", "zh"].flatMap((book) => [`${book}/index.html`, `${book}/shift.html`, `${book}/labs/waveforms.html`])];

module.exports = {
  ci: {
    collect: {
      staticDistDir: "site",
      url: pages.map((page) => `http://localhost/${page}`),
      numberOfRuns: 3,
      settings: { chromeFlags: "--headless --no-sandbox --disable-gpu", ...(desktop && { preset: "desktop" }) },
    },
    assert: {
      assertions: {
        "categories:performance": ["error", { minScore: desktop ? 0.98 : 0.9, aggregationMethod: "median" }],
        "categories:accessibility": ["error", { minScore: 1 }],
        "categories:best-practices": ["error", { minScore: 1 }],
        // Served from this machine the canonical address is another one: the built site's own is tested elsewhere.
        "categories:seo": ["error", { minScore: 0.9 }],
      },
    },
    upload: { target: "filesystem", outputDir: "dist/lighthouse" },
  },
};
