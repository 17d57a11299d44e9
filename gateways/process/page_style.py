"""How the status page looks, in light, in the dark, on a telephone and on paper, and how it comes up to date."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--ink:#1c2733;--dim:#5b6875;--line:#d9dfe5;--ground:#f4f6f8;--card:#fff;--busy:#1f6feb;
  --idle:#9db4c8;--starting:#8250df;--closing:#bf8700;--bad:#cf222e;--good:#1a7f37;--free:#e4e9ee}
@media(prefers-color-scheme:dark){
 :root{--ink:#dfe7ee;--dim:#93a1af;--line:#2c3742;--ground:#0f151b;--card:#182029;--busy:#58a6ff;--idle:#4f6579;
  --starting:#bc8cff;--closing:#d9a520;--bad:#ff6b6b;--good:#3fb950;--free:#26313c}
}
*{box-sizing:border-box}
body{margin:0;padding:1.2rem clamp(.8rem,3vw,2.4rem) 2rem;background:var(--ground);color:var(--ink);
  font:15px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif;font-variant-numeric:tabular-nums}
h1{font-size:1.35rem;margin:0}
h2{font-size:1.15rem;margin:0;display:flex;flex-wrap:wrap;gap:.1rem .8rem;align-items:baseline}
h2 small{font-size:.82rem;font-weight:400;color:var(--dim);overflow-wrap:anywhere}
p{margin:0}
header,footer{display:flex;flex-wrap:wrap;gap:.2rem 1rem;align-items:baseline}
header{margin-bottom:1rem}
footer{margin-top:1.2rem;color:var(--dim);font-size:.85rem}
a{color:var(--busy)}
.dim{color:var(--dim)}
.bad{color:var(--bad);font-weight:600}
#lost{color:#fff;background:var(--bad);border-radius:.3rem;padding:0 .5rem}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem;margin-bottom:1.1rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(9.2rem,100%),1fr));gap:.9rem 1.15rem;
  margin:.9rem 0}
.tile h3{font-size:.74rem;font-weight:600;letter-spacing:.03em;color:var(--dim);margin:0;text-transform:uppercase}
.tile b{font-size:1.35rem;font-weight:600;line-height:1.3}
.tile b small{font-size:.85rem;font-weight:400;color:var(--dim)}
.tile p{font-size:.82rem;color:var(--dim)}
.tile svg,.bar{display:block;width:100%;height:28px;margin:.3rem 0}
.bar{display:flex;gap:1px;height:.7rem;border-radius:.35rem;overflow:hidden;background:var(--free);
  margin:.55rem 0 .5rem}
.bar i{min-width:2px}
.busy{--c:var(--busy)}
.idle{--c:var(--idle)}
.starting{--c:var(--starting)}
.closing{--c:var(--closing)}
.long{--c:var(--bad)}
.ok{--c:var(--good)}
.moved{--c:var(--idle)}
.client{--c:var(--closing)}
.server{--c:var(--bad)}
.none{--c:var(--starting)}
.bar i{background:var(--c)}
.key::before{content:"";display:inline-block;width:.6em;height:.6em;border-radius:.15em;margin-right:.3em;
  background:var(--c)}
.nowrap,.key{white-space:nowrap}
.key{margin-right:.7em}
path.area{fill:var(--busy);opacity:.18}
path.curve{fill:none;stroke:var(--busy);stroke-width:1.5;vector-effect:non-scaling-stroke}
rect{fill:var(--busy)}
rect.late{fill:var(--closing)}
rect.base{fill:var(--line)}
table{border-collapse:collapse;width:100%;font-size:.86rem}
th{font-weight:600;color:var(--dim);font-size:.74rem;text-transform:uppercase;letter-spacing:.03em}
th,td{text-align:right;padding:.28rem .6rem;border-top:1px solid var(--line)}
th{border-top:0}
th:first-child,td:first-child{padding-left:0}
td:last-child,th:last-child{text-align:left;width:45%;overflow-wrap:anywhere;padding-right:0}
td:nth-child(2),th:nth-child(2){text-align:left;white-space:nowrap}
td.request{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.95em}
tr.idle td.request,tr.starting td.request{color:var(--dim)}
tr.long td{color:var(--bad)}
tr.long td.request{font-weight:600}
@media(max-width:640px){
 body{padding:.8rem .6rem 1.4rem}
 section{padding:.8rem}
 thead{display:none}
 tr{display:grid;grid-template-columns:1fr 1fr 1fr 1fr;gap:.1rem .5rem;padding:.5rem 0;
  border-top:1px solid var(--line)}
 table,tbody{display:block}
 td{border:0;padding:0!important;text-align:left;width:auto!important}
 td::before{content:attr(data-name);display:block;font-size:.66rem;color:var(--dim);text-transform:uppercase;
  font-weight:400}
 td.request{grid-column:1/-1}
 td.request::before,td:nth-child(2)::before{display:none}
 td:nth-child(2){align-self:end}
 td.request:empty{display:none}
 .tiles{grid-template-columns:1fr 1fr;gap:.8rem}
}
@media print{
 :root{--ink:#000;--dim:#444;--line:#bbb;--ground:#fff;--card:#fff;--busy:#1f6feb;--idle:#9db4c8;--free:#e4e9ee}
 body{padding:0;font-size:11px}
 section{border:0;padding:0;margin-bottom:1.5em}
 tr,.tile{break-inside:avoid}
 h2{break-after:avoid}
 .bar,.bar i,rect,path,.key::before{print-color-adjust:exact;-webkit-print-color-adjust:exact}
 footer,#lost{display:none}
}
"""
SCRIPT = """
const lost=document.getElementById("lost");
let since=0;
async function look(){
 if(document.hidden||!getSelection().isCollapsed)return;
 try{
  const answer=await fetch(location.href,{cache:"no-store",signal:AbortSignal.timeout(4000)});
  if(!answer.ok)throw 0;
  const page=new DOMParser().parseFromString(await answer.text(),"text/html");
  for(const name of["main","#sum"])document.querySelector(name).replaceWith(page.querySelector(name));
  document.title=page.title;since=0;lost.hidden=true;
 }catch{
  since=since||Date.now();
  lost.textContent="no answer for "+Math.round((Date.now()-since)/1000)+" s";lost.hidden=false;
 }
}
setInterval(look,2000);
document.addEventListener("visibilitychange",look);
"""
