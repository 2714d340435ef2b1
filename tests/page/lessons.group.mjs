/** The words of the lessons and their steps; and that the groups have every file of tests once. */

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { it } from 'node:test';
import './languages.test.mjs';
import './steps.test.mjs';

it('the groups have every file of tests once', () => {
  const files = readdirSync(new URL('.', import.meta.url));
  const grouped = files.filter((name) => name.endsWith('.group.mjs'))
    .flatMap((name) => [...readFileSync(new URL(name, import.meta.url), 'utf8').matchAll(/^import '\.\/(.+\.test\.mjs)';$/gm)].map(([, file]) => file));
  assert.deepEqual([...grouped].sort(), files.filter((name) => name.endsWith('.test.mjs')).sort());
});
