"""The style sheet of the index page: one column, light and dark, from a telephone to a desk; no network, no script."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff; --ink: #1d2024; --soft: #5d646d; --line: #dedbd2; --accent: #0b6e4f;
  --done: #0b6e4f; --done-ink: #ffffff; --kept: #8a8f96;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1b1f23; --ink: #e7e5df; --soft: #9ba3ac; --line: #30363c; --accent: #5fd3a5;
    --done: #257a59; --done-ink: #ffffff; --kept: #858d96;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
main { max-width: 62rem; margin: 0 auto; padding: clamp(1.5rem, 5vw, 4rem) clamp(1rem, 4vw, 2rem); }
code, .path, .pages { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { font-size: .92em; overflow-wrap: anywhere; }
h1 {
  font-size: clamp(1.75rem, 5vw, 2.75rem); line-height: 1.1; letter-spacing: -.02em; margin: 0 0 1rem;
  text-wrap: balance;
}
h2 { font-size: 1.25rem; line-height: 1.25; margin: 3rem 0 1rem; }
h3 { font-size: 1.25rem; line-height: 1.25; margin: 0; }
p { margin: 0 0 1rem; }
a { color: var(--accent); text-underline-offset: .2em; text-decoration-thickness: .06em; }
a:hover { text-decoration-thickness: .12em; }
:focus-visible { outline: .15rem solid var(--accent); outline-offset: .15rem; border-radius: .2rem; }
.lead { font-size: 1.125rem; max-width: 44rem; color: var(--soft); }
.legend {
  display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; align-items: center; color: var(--soft); font-size: .9rem;
}
.legend .step { margin-right: .4rem; }
.ladder { list-style: none; margin: 1.5rem 0 0; padding: 0; }
.rung { position: relative; padding: 0 0 1.25rem 3.25rem; }
.rung::before {
  content: ""; position: absolute; left: 1.05rem; top: 2.4rem; bottom: -.35rem; width: .15rem; background: var(--line);
}
.rung:last-child::before { display: none; }
.number {
  position: absolute; left: 0; top: 1rem; width: 2.25rem; height: 2.25rem; border-radius: 50%; display: grid;
  place-items: center; background: var(--paper); border: .15rem solid var(--line); font-weight: 600;
  font-variant-numeric: tabular-nums; color: var(--soft);
}
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1.1rem 1.25rem; }
.card header { display: flex; flex-wrap: wrap; gap: .15rem .75rem; align-items: baseline; }
.path { font-size: .92rem; color: var(--soft); overflow-wrap: anywhere; }
.card p { margin: .45rem 0 .8rem; max-width: 46rem; }
.steps { display: flex; flex-wrap: wrap; gap: .35rem; list-style: none; margin: 0 0 .9rem; padding: 0; }
.step {
  display: inline-block; font-size: .8125rem; line-height: 1.4; padding: .1rem .6rem; border-radius: 1rem;
  border: 1px solid var(--done); background: var(--done); color: var(--done-ink); white-space: nowrap;
}
.step.kept { border: 1px dashed var(--kept); background: none; color: var(--soft); }
.pages {
  display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; list-style: none; margin: 0; padding: 0; font-size: .92rem;
}
.pages a { display: inline-block; padding: .2rem 0; overflow-wrap: anywhere; }
label { display: block; margin-bottom: .6rem; }
textarea {
  display: block; width: 100%; min-height: 5rem; padding: .7rem .8rem; font: inherit; color: inherit;
  background: var(--card); border: 1px solid var(--kept); border-radius: .4rem; resize: vertical;
}
.buttons { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: .75rem; }
button {
  font: inherit; font-size: .92rem; color: var(--accent); background: var(--card); border: 1px solid currentcolor;
  border-radius: .4rem; padding: .4rem .9rem; cursor: pointer;
}
button:hover { background: var(--done); color: var(--done-ink); border-color: var(--done); }
table { border-collapse: collapse; width: 100%; max-width: 46rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem 1rem .45rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 400; color: var(--soft); }
td { font-variant-numeric: tabular-nums; overflow-wrap: break-word; }
td.name { color: var(--soft); font-size: .92rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .9rem; }
@media (max-width: 34rem) {
  .rung { padding-left: 0; }
  .rung::before { display: none; }
  .number { left: auto; right: 1rem; top: .8rem; width: 1.9rem; height: 1.9rem; font-size: .9rem; background: none; }
  .card { padding: 1rem; }
  .card header { padding-right: 2.5rem; }
  td.name { display: none; }
}
"""
