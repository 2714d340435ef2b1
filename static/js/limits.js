/**
 * Limits: sends a burst to one limiter and draws each request at the time of its answer.
 *
 * A browser has six connections to one host. Five requests that wait in a leaky bucket leave one for the others, which is enough
 * here; a limit on requests at once cannot be seen from one browser.
 */

import { $, el, put, svg } from './dom.js';
import * as lang from './lang.js';
import { languages } from './words.js';

lang.learn(languages);

const LIMITERS = [
  { id: 'bucket', path: 'seckill/limited' },
  { id: 'shared', path: 'seckill/limited/shared' },
  { id: 'queued', path: 'nginx/leaky/queued' },
  { id: 'nodelay', path: 'nginx/leaky/nodelay' },
];

/** So many requests, one every so many milliseconds; a picture of so many milliseconds, in columns. */
const REQUESTS = 150;
const EACH_MS = 20;
const SHOWN_MS = 9000;
const COLUMN_MS = 100;

/** Of the picture: a column's width, a dot's radius, and where the axis is. */
const [COLUMN, RADIUS, AXIS, HEIGHT] = [13, 2.25, 32, 76];

/** @param {number} ms @returns {Promise<void>} */
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** @typedef {{sent: number, at: number, status: number}} Answer when it was sent and when it was answered, in milliseconds since the first was sent */

/** Who is answered so much later has waited. */
const WAITED_MS = 300;

/** @param {string} path @param {Answer[]} answers @param {() => void} changed @returns {Promise<void>} once all are answered; `answers` grows meanwhile */
async function burst(path, answers, changed) {
  const begun = performance.now();
  const one = async (/** @type {number} */ n) => {
    await pause(n * EACH_MS);
    const sent = performance.now() - begun;
    const answer = await fetch(`${path}?who=${n + 1}`, { cache: 'no-store' }).catch(() => ({ status: 0 }));
    answers.push({ sent, at: performance.now() - begun, status: answer.status });
    changed();
  };
  await Promise.all(Array.from({ length: REQUESTS }, (_, n) => one(n)));
}

/** Let through above the axis, refused below it, those of one column in a pile; a line from when one was sent that has waited; beside each second how many
 * were let through in it. @param {Answer[]} answers @param {string} label */
function picture(answers, label) {
  const piles = new Map();
  const marks = answers.flatMap(({ sent, at, status }) => {
    const column = Math.min(Math.floor(at / COLUMN_MS), SHOWN_MS / COLUMN_MS - 1);
    const through = status === 200;
    const pile = `${column} ${through}`;
    const height = piles.get(pile) ?? 0;
    piles.set(pile, height + 1);
    const x = (column + 0.5) * COLUMN;
    const y = AXIS + (through ? -1 : 1) * (height + 0.75) * 2 * (RADIUS + 0.25);
    const waited = through && at - sent > WAITED_MS ? [svg('path', { class: 'waited', d: `M${(sent / COLUMN_MS) * COLUMN} ${y}H${x - RADIUS}` })] : [];
    if (through) return [...waited, svg('circle', { class: 'through', cx: x, cy: y, r: RADIUS })];
    return [svg('path', { class: 'refused', d: `M${x - 2} ${y - 2}l4 4m0 -4l-4 4` })];
  });
  const inSecond = (/** @type {number} */ s) => answers.filter(({ at, status }) => status === 200 && Math.floor(at / 1000) === s).length;
  const width = (SHOWN_MS / COLUMN_MS) * COLUMN;
  const seconds = Array.from({ length: SHOWN_MS / 1000 }, (_, s) => {
    const x = (s * 1000 / COLUMN_MS) * COLUMN;
    return svg('g', {}, svg('path', { class: 'axis', d: `M${x} ${AXIS - 4}v8` }),
      svg('text', { x: x + 3, y: HEIGHT - 2 }, `${s} s${answers.length ? ` · ${inSecond(s)}` : ''}`));
  });
  return svg('svg', { class: 'strip', viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img', 'aria-label': label },
    svg('path', { class: 'axis', d: `M0 ${AXIS}H${width}` }), ...seconds, ...marks);
}

/** A limiter's row: its name, its button, what it came to, its picture. @param {{id: string, path: string}} limiter */
function row({ id, path }) {
  const send = el('button', { class: 'send' });
  const said = el('output', {});
  const [name, note] = [el('h2', {}), el('p', { class: 'dim' })];
  const shown = el('div', {});
  /** @type {Answer[]} */
  let answers = [];
  let busy = false;

  const draw = () => {
    const through = answers.filter((answer) => answer.status === 200).length;
    const missing = answers.some((answer) => answer.status === 404);
    const refused = answers.filter((answer) => answer.status === 429).length;
    const failed = answers.length - through - refused;
    const summary = missing ? lang.t('limitsNginx') : lang.t('limitsSaid', through, refused, failed);
    put(name, lang.t('limiter', id));
    put(note, lang.t('limiterNote', id));
    put(send, lang.t('limitsSend', REQUESTS));
    send.setAttribute('aria-disabled', String(busy));
    put(said, answers.length ? summary : '');
    shown.replaceChildren(picture(answers, `${lang.t('limiter', id)}: ${summary}`));
  };
  send.addEventListener('click', async () => {
    if (busy) return;
    [answers, busy] = [[], true];
    await burst(path, answers, draw);
    busy = false;
    draw();
  });
  const element = el('li', { id }, el('div', { class: 'heading' }, name, el('code', {}, `GET /${path}`), said, send), note, shown);
  return { element, draw };
}

const rows = LIMITERS.map(row);
$('limiters').append(...rows.map(({ element }) => element));

/** @param {'zh' | 'en'} [to] */
function speak(to) {
  if (to) lang.speak(to);
  lang.translate();
  document.title = `oversell · ${lang.t('limitsTitle')}`;
  for (const each of ['zh', 'en']) $(each).setAttribute('aria-pressed', String(lang.current() === each));
  for (const { draw } of rows) draw();
}
for (const to of /** @type {const} */ (['zh', 'en'])) $(to).addEventListener('click', () => speak(to));
speak();
