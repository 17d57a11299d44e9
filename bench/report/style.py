"""The style sheet of the reports: light, dark and paper, from a phone's width up. Nothing is fetched."""

from __future__ import annotations

STYLE = """\
:root { color-scheme: light dark;
  --paper: #fdfdfb; --ink: #1c1e21; --soft: #5c6168; --rule: #d9dbd6; --grid: #e4e6e1; --bad: #a3210f; --mark: #1c1e21;
  --s0: #8c4a2f; --s1: #b8860b; --s2: #5a7d2a; --s3: #1f7a73; --s4: #2b5fa8; --s5: #6b3fa0; --s6: #a03f78; --s7: #4f5b66; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #16181b; --ink: #e8e8e4; --soft: #a3a8ae; --rule: #3a3e43; --grid: #2b2f34; --bad: #ff8a73; --mark: #f4f4f0;
  --s0: #d08a6a; --s1: #dcb347; --s2: #97bf5e; --s3: #58bdb3; --s4: #78a9ec; --s5: #b08fe0; --s6: #e08abb; --s7: #a9b4be; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--rule); }
p { margin: 0 0 .7rem; max-width: 46rem; }
.lead { font-size: 1.05rem; }
.note, small { color: var(--soft); font-size: .85rem; font-weight: normal; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; margin-bottom: .8rem; font-size: .92rem; }
th, td { text-align: right; padding: .35rem .55rem; border-bottom: 1px solid var(--rule); vertical-align: bottom; }
th:first-child { text-align: left; padding-left: 0; }
tbody th { font-weight: 600; white-space: nowrap; }
thead th { font-weight: 600; line-height: 1.2; }
tr.failed td { text-align: left; color: var(--bad); }
.good { color: var(--s2); } .bad { color: var(--bad); }
dl { display: grid; grid-template-columns: 8rem 1fr; gap: .25rem 1rem; margin: 0; font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; margin: .5rem 0; font: 13px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg .tick, svg .axis { fill: var(--soft); font-size: 12px; }
svg .value { font-variant-numeric: tabular-nums; }
svg .failed { fill: var(--bad); }
.grid { stroke: var(--grid); stroke-width: 1; }
.whisker { stroke: var(--ink); stroke-width: 1.5; }
.mark { fill: var(--paper); stroke: var(--mark); stroke-width: 1.5; }
.stroke { fill: none; stroke-width: 2.25; stroke-linejoin: round; }
.s0.fill { fill: var(--s0); } .s1.fill { fill: var(--s1); } .s2.fill { fill: var(--s2); } .s3.fill { fill: var(--s3); }
.s4.fill { fill: var(--s4); } .s5.fill { fill: var(--s5); } .s6.fill { fill: var(--s6); } .s7.fill { fill: var(--s7); }
.s0.stroke { stroke: var(--s0); } .s1.stroke { stroke: var(--s1); stroke-dasharray: 7 3; } .s2.stroke { stroke: var(--s2); }
.s3.stroke { stroke: var(--s3); stroke-dasharray: 2 3; } .s4.stroke { stroke: var(--s4); } .s5.stroke { stroke: var(--s5); stroke-dasharray: 9 3 2 3; }
.s6.stroke { stroke: var(--s6); } .s7.stroke { stroke: var(--s7); stroke-dasharray: 4 4; }
svg .s0.name { fill: var(--s0); } svg .s1.name { fill: var(--s1); } svg .s2.name { fill: var(--s2); } svg .s3.name { fill: var(--s3); }
svg .s4.name { fill: var(--s4); } svg .s5.name { fill: var(--s5); } svg .s6.name { fill: var(--s6); } svg .s7.name { fill: var(--s7); }
svg.narrow { display: none; }
@media (max-width: 640px) {
  main { padding: 1.25rem 1rem 3rem; }
  h1 { font-size: 1.35rem; }
  svg.wide { display: none; } svg.narrow { display: block; }
  thead { display: none; }
  table, tbody { display: block; }
  tr { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1rem; border-bottom: 1px solid var(--rule); padding: .6rem 0; }
  tbody th { grid-column: 1 / -1; text-align: left; padding: 0 0 .2rem; border: 0; }
  td { display: flex; justify-content: space-between; gap: .75rem; border: 0; padding: .1rem 0; text-align: right; }
  td::before { content: attr(data-label); color: var(--soft); text-align: left; font-size: .85rem; }
  td.full, tr.failed td { grid-column: 1 / -1; display: block; }
  td.full { display: flex; }
  tr.failed td::before { content: none; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --rule: #999; --grid: #ddd; --bad: #a3210f; --mark: #000;
    --s0: #8c4a2f; --s1: #9a7008; --s2: #5a7d2a; --s3: #1f7a73; --s4: #2b5fa8; --s5: #6b3fa0; --s6: #a03f78; --s7: #4f5b66; }
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; }
  section { break-inside: avoid; } svg { max-width: 16cm; }
  svg rect { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
