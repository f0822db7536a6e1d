"""The style of an exported page: quiet, light or dark as the reader's system is, readable on paper. Data only."""

from __future__ import annotations

STYLE = """
:root { --ink: #1d2126; --soft: #636b75; --line: #dfe3e8; --ground: #fbfbfa; --card: #ffffff; --prompt: #eef3fb; --accent: #2f5fb3;
  --good: #2b7a4b; --bad: #b3372f; --added: #e4f4e8; --removed: #fbe7e5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dfe3e8; --soft: #98a1ac; --line: #30363d; --ground: #14171b; --card: #1b1f24; --prompt: #1d2733; --accent: #7fa8ee;
    --good: #6cc08b; --bad: #ee8a80; --added: #17301f; --removed: #3a1f1d; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
header, footer { max-width: 76rem; margin: 0 auto; padding: 1.6rem 1.2rem .6rem; }
footer { color: var(--soft); font-size: .85rem; padding-bottom: 2rem; }
h1 { font-size: 1.5rem; margin: 0; line-height: 1.25; }
h2 { font-size: .8rem; margin: 0 0 .5rem; color: var(--soft); font-weight: 600; }
h3 { font-size: .85rem; margin: 0; font-weight: 600; color: var(--soft); }
.directory { margin: .2rem 0 .8rem; color: var(--soft); font-family: ui-monospace, monospace; font-size: .85rem; }
dl { display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; margin: 0; font-size: .85rem; }
dt { color: var(--soft); } dd { margin: 0 0 0 -1.2rem; }
.columns { max-width: 76rem; margin: 0 auto; padding: .8rem 1.2rem; display: grid; grid-template-columns: 17rem minmax(0, 1fr); gap: 2rem; }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow: auto; padding: .8rem 0; font-size: .85rem; }
nav ol { list-style: none; margin: 0; padding: 0; border-left: 2px solid var(--line); }
nav li { padding: .25rem 0 .25rem .8rem; }
nav a { color: inherit; text-decoration: none; } nav a:hover, nav a:focus { color: var(--accent); text-decoration: underline; }
nav time, .at, .took, .calls { color: var(--soft); font-variant-numeric: tabular-nums; }
.calls { white-space: nowrap; }
article { margin: 0 0 1rem; scroll-margin-top: 1rem; }
article:target { outline: 2px solid var(--accent); outline-offset: .4rem; border-radius: .3rem; }
.head { display: flex; gap: 1rem; justify-content: space-between; align-items: baseline; margin-bottom: .2rem; }
.at { font-size: .8rem; text-decoration: none; white-space: nowrap; }
.prompt { background: var(--prompt); border-radius: .5rem; padding: .7rem 1rem; margin-top: 1.6rem; }
.words { white-space: pre-wrap; }
.answer p, .answer div { margin: .5rem 0; }
.answer > h3, .answer > h4, .answer > h5, .answer > h6 { font-size: 1.05rem; color: var(--ink); margin: 1rem 0 .3rem; }
pre { margin: .4rem 0; padding: .6rem .8rem; background: var(--card); border: 1px solid var(--line); border-radius: .4rem; overflow-x: auto;
  font: .85rem/1.45 ui-monospace, monospace; white-space: pre-wrap; }
code { font: .9em ui-monospace, monospace; background: var(--card); border: 1px solid var(--line); border-radius: .2rem; padding: 0 .2em; }
pre code { background: none; border: 0; padding: 0; font: inherit; }
table { border-collapse: collapse; margin: .6rem 0; font-size: .92rem; } td, th { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; }
th { background: var(--card); font-weight: 600; }
summary { cursor: pointer; color: var(--soft); } summary:focus-visible { outline: 2px solid var(--accent); }
.call { border-left: 3px solid var(--line); padding-left: .9rem; }
.call.failed { border-color: var(--bad); }
.call .title { font-family: ui-monospace, monospace; font-size: .9rem; color: var(--ink); }
.mark { color: var(--good); font-weight: 700; } .failed .mark { color: var(--bad); }
.took { font-size: .8rem; margin-left: .4rem; }
.arguments { margin: .3rem 0; font-size: .85rem; }
.subagent { margin: .6rem 0; padding-left: .9rem; border-left: 3px double var(--line); }
.subagent[open] > summary { margin-bottom: .6rem; } .subagent .prompt { margin-top: .4rem; }
.thinking { color: var(--soft); border-left: 3px solid var(--line); padding-left: .9rem; margin: .3rem 0; }
.remark { color: var(--soft); font-size: .9rem; border-top: 1px dashed var(--line); padding-top: .3rem; }
.problem { color: var(--bad); } .empty { color: var(--soft); font-style: italic; margin: .3rem 0; }
.added { background: var(--added); } .removed { background: var(--removed); } .place { color: var(--soft); }
img { max-width: 100%; height: auto; border: 1px solid var(--line); }
@media (max-width: 60rem) { .columns { grid-template-columns: minmax(0, 1fr); gap: 0; } nav { position: static; max-height: 14rem; } }
@media print { nav { display: none; } .columns { display: block; } body { background: #fff; } }
"""
