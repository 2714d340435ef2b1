/**
 * The modules that index.html names, so that a browser fetches all of them at once and not level by level of their imports.
 * `OVERSELL_WRITE_DOCS=1` (`make docs`) writes the list from their imports.
 */

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { posix } from 'node:path';
import process from 'node:process';
import { it } from 'node:test';

const STATIC = new URL('../../static/', import.meta.url);
const PAGE = new URL('index.html', STATIC);
/** What first-view.js imports once the lesson is there. */
const LATER = 'js/page/page.js';
const LIST = /(?<=<!-- modules: [^\n]*-->\n)(?: *<link [^\n]*\n)*(?= *<!-- end of modules -->)/;

it('index.html names every module that it imports', async () => {
  const page = await readFile(PAGE, 'utf8');
  const scripts = [...page.matchAll(/<script [^>]*src="([^"]+)"/g)].map(([, path]) => path);
  const first = await importedBy(scripts);
  const later = await importedBy([LATER]);
  const list = [
    ...first.filter((path) => !scripts.includes(path)).map((path) => link('modulepreload', path)),
    ...later.filter((path) => !first.includes(path)).map((path) => link('later', path)),
  ].join('');
  assert.match(page, LIST);
  if (process.env.OVERSELL_WRITE_DOCS === '1') await writeFile(PAGE, page.replace(LIST, list));
  else assert.equal(LIST.exec(page)?.[0], list, 'static/index.html is stale: `make docs` writes it');
});

/** @param {string} rel @param {string} path */
const link = (rel, path) => `  <link rel="${rel}" href="${path}">\n`;

/** These modules and all that they import, sorted. @param {string[]} modules paths from static/ */
async function importedBy(modules) {
  const found = new Set(modules);
  for (const module of found) {
    const text = await readFile(new URL(module, STATIC), 'utf8');
    for (const [, path] of text.matchAll(/^(?:import|export)\b[^']*\bfrom '(\.[^']+)';/gm)) found.add(posix.join(posix.dirname(module), path));
  }
  return [...found].toSorted();
}
