/** A series as one HTML file that needs no network, in the language of the page. */

import { currentLanguage, formatNumber, t } from '../shared/language.js';
import { resultDetails, resultBars, resultText } from '../run/result-bars.js';

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 -apple-system, "Segoe UI", "PingFang SC", "Noto Sans SC", "Microsoft YaHei", system-ui, sans-serif; font-variant-numeric: tabular-nums; }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: light-dark(#1b1c1e, #eceae5); background: light-dark(#fdfdfb, #15171a); }
section { border-top: 1px solid light-dark(#dfdfd9, #34383d); padding: .5rem 0; display: grid; grid-template-columns: 12rem 1fr 1fr; gap: 0 2rem; }
h2 { font-size: 1rem; margin: 0; } p { margin: 0; } .dim { color: light-dark(#5d6167, #a2a7ae); font-size: .875rem; }
svg { width: 100%; height: 2.5rem; fill: currentColor; } .red p:first-of-type { color: light-dark(#c4001d, #ff5d5d); font-weight: 700; }
.hatch-ground { fill: light-dark(#f6cdd1, #5a2026); } .hatch-line { fill: light-dark(#c4001d, #ff5d5d); }
@media (max-width: 40rem) { section { grid-template-columns: 1fr; } }`;

/** @param {string} text */
const escapeHtml = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/** @param {import('./series.js').Series} series @returns {string} an HTML file */
export function reportOf({ name, at, settings, rows }) {
  const full = Math.max(1, ...rows.map((row) => row.sold));
  const cell = (/** @type {import('../run/result-bars.js').Row | undefined} */ row) => (row
    ? `<div class="${row.oversold > 0 ? 'red' : ''}">${new XMLSerializer().serializeToString(resultBars(row, full))}<p>${escapeHtml(`${t(row.target)}${t('colon')}${resultText(row)}`)}</p><p class="dim">${escapeHtml(`${resultDetails(row)} · p50 ${formatNumber(row.median)} ms · p99 ${formatNumber(row.p99_line)} ms`)}</p></div>`
    : '<div></div>');
  const sections = [...new Set(rows.map((row) => row.strategy))].map((slug) => {
    const at = (/** @type {string} */ target) => cell(rows.find((row) => row.strategy === slug && row.target === target));
    return `<section><h2>${escapeHtml(slug)}</h2>${at('one')}${at('three')}</section>`;
  });
  const stores = new Set(rows.map((row) => row.store)).size > 1 ? `<p class="dim">${escapeHtml(t('otherStores'))}</p>` : '';
  return `<!doctype html>
<html lang="${currentLanguage() === 'zh' ? 'zh-CN' : 'en'}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(name)}</title><style>${STYLE}</style></head><body>
<h1>${escapeHtml(name)}</h1><p>${escapeHtml(t('seriesPlan', settings))}</p><p class="dim">${escapeHtml(new Date(at).toLocaleString())}</p>${stores}
<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>${document.getElementById('hatch')?.outerHTML ?? ''}</defs></svg>
${sections.join('\n')}
</body></html>
`;
}
