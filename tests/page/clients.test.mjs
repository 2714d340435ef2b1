/**
 * What others generate from /openapi.json, in TypeScript: a client and types, with which a stranger's program (`generated-client.ts`) compiles
 * strictly, buys a piece, orders a voucher and watches a replay. Tools of other languages are in `scripts/clients`.
 */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';
import { after, before, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { TARGET, describeInSoak, getJson, lab } from './support.mjs';

const PROGRAMS = fileURLToPath(new URL('../../node_modules/.bin', import.meta.url));
const folder = join(TARGET, `clients-${process.pid}`);

/** Runs a program of npm in the folder; what it prints if it fails is the error. @param {string} program @param {string[]} given */
const run = (program, ...given) => promisify(execFile)(join(PROGRAMS, program), given, { cwd: folder })
  .catch(({ stdout, stderr }) => assert.fail(`${program} ${given.join(' ')}\n${stdout}${stderr}`));

/** Generates both from a document, and compiles them with the stranger's program. @param {any} document */
async function compile(document) {
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(document));
  await Promise.all([run('openapi-ts', '--input', 'openapi.json', '--output', 'client'), run('openapi-typescript', 'openapi.json', '--output', 'types.ts')]);
  await run('tsc', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'commonjs', '--types', 'node', 'generated-client.ts');
}

describeInSoak('generated clients', () => {
  const suite = lab();
  before(async () => {
    await mkdir(folder, { recursive: true });
    await copyFile(new URL('generated-client.ts', import.meta.url), join(folder, 'generated-client.ts'));
    // Without it Node.js reads what tsc has written as modules, as all of this project.
    await writeFile(join(folder, 'package.json'), '{}');
  });
  after(() => rm(folder, { recursive: true }));

  it('compile, buy, order and watch', async () => {
    await compile(await getJson(`${suite.at.http}/openapi.json`));
    const { useService } = createRequire(join(folder, 'package.json'))('./generated-client.js');
    const { bought, order, replays, events } = await useService(suite.at.http);
    assert.equal(bought.outcome, 'sold');
    assert.match(order.order_id, /^\d+$/);
    assert.ok(replays.length > 30);
    assert.ok(events.some(({ event }) => event === 'written') && events.at(-1).as_meant, JSON.stringify(events.at(-1)));
  });

  // The twin: a step's name is a sentence, so the program names none.
  it('do not compile where a value cannot be named', async () => {
    const document = await getJson(`${suite.at.http}/openapi.json`);
    document.paths['/voucher-order/seckill/{id}'].post.parameters.find(({ name }) => name === 'strategy').schema = { type: 'string', enum: ['a step of the seckill'] };
    await assert.rejects(compile(document), /redis-rlock/);
  });
});
