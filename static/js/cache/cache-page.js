/**
 * What a browser caches: four pictures, one for each kind of answer, and what this visit transferred for each.
 *
 * The browser's Resource Timing says it: nothing, only headers (304), or headers and body.
 */

import { $, el, setText } from '../shared/dom.js';
import { t } from '../shared/language.js';
import { startPage } from '../shared/small-page.js';

const STATES = [
  { id: 'fresh', headers: 'Cache-Control: max-age=60' },
  { id: 'etag', headers: 'Cache-Control: no-cache, ETag' },
  { id: 'last-modified', headers: 'Cache-Control: no-cache, Last-Modified' },
  { id: 'never', headers: 'Cache-Control: no-store' },
];

/** `transferSize` counts this much for the headers, whatever their length (Resource Timing, 4.5). */
const HEADERS_SIZE = 300;

/** @param {string} id @returns {'none' | 'head' | 'all' | undefined} what was transferred for this picture */
function transferOf(id) {
  const entry = performance.getEntriesByType('resource').find(({ name }) => name.endsWith(`/cache/${id}.svg`));
  if (!(entry instanceof PerformanceResourceTiming)) return undefined;
  if (entry.transferSize === 0) return 'none';
  return entry.transferSize <= HEADERS_SIZE ? 'head' : 'all';
}

const rows = STATES.map(({ id, headers }) => {
  const [note, result] = [el('p', {}), el('output', { id: `${id}-said` })];
  const image = el('img', { src: `cache/${id}.svg`, alt: '', width: 96, height: 96 });
  const draw = () => {
    setText(note, t('cacheNote', id));
    setText(result, t('cacheSaid', transferOf(id)) ?? '');
  };
  image.addEventListener('load', draw);
  return { element: el('li', {}, image, el('div', {}, el('code', {}, `GET /cache/${id}.svg`), ' ', el('code', {}, headers), note, result)), draw };
});
$('states').append(...rows.map(({ element }) => element));

startPage(() => rows.forEach(({ draw }) => draw()));
