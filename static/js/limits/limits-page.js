/**
 * Limits: sends a burst to a limiter, and draws how full it is meanwhile and each request at the time of its answer.
 *
 * A browser has six connections to a host: five requests that wait in a leaky bucket leave one for the others. Where a limit counts
 * connections, the service sends the burst. Read on in fill-level.js.
 */

import * as api from '../shared/api.js';
import { rateAt, levelsAt } from './fill-level.js';
import { $, el, setText, svg } from '../shared/dom.js';
import { t } from '../shared/language.js';
import { startPage } from '../shared/small-page.js';

/** @typedef {import('./fill-level.js').Answer} Answer */
/** `at_once`: how many requests the service sends at the same time. @typedef {{id: import('./fill-level.js').Kind, path: string, at_once?: number}} Limiter */

/** @type {Limiter[]} */
const LIMITERS = [
  { id: 'bucket', path: 'seckill/limited' },
  { id: 'shared', path: 'seckill/limited/shared' },
  { id: 'queued', path: 'nginx/leaky/queued' },
  { id: 'nodelay', path: 'nginx/leaky/nodelay' },
  { id: 'address', path: 'nginx/connections/address', at_once: 30 },
  { id: 'server', path: 'nginx/connections/server', at_once: 120 },
];

/** How many requests a burst has, and the time between two. */
const REQUESTS = 150;
const INTERVAL_MS = 20;
/** The picture moves for this long after the last answer. */
const TIME_AFTER_LAST_MS = 1000;
/** With reduced motion the picture moves only this often. */
const REDUCED_MOTION_MS = 500;
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');
const PICTURE_MS = 9000;
const COLUMN_MS = 100;

/** Sizes: a column, a dot, the least room above the axis and below it, and a line of words. */
const [COLUMN, RADIUS, ABOVE, BELOW, LINE] = [13, 2.25, 32, 36, 18];
/** The side of a place in a bucket. */
const PLACE = 16;

/** @param {number} ms @returns {Promise<void>} */
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** An answer later than this has waited in nginx's queue, not for the browser. */
const QUEUED_MS = 700;

/** A browser has six connections to a host. The others are sent when one is free, so that their waiting is not counted. */
const MAX_CONNECTIONS = 6;
let openConnections = 0;
/** @type {(() => void)[]} */
const waitingRequests = [];

/** @returns {Promise<() => void>} releases the connection */
async function acquireConnection() {
  while (openConnections >= MAX_CONNECTIONS) await new Promise((resolve) => { waitingRequests.push(() => resolve(null)); });
  openConnections += 1;
  return () => {
    openConnections -= 1;
    waitingRequests.shift()?.();
  };
}

/** @param {string} path @param {Answer[]} answers @param {() => void} changed @returns {Promise<void>} once all are answered; `answers` grows meanwhile */
async function sendBurst(path, answers, changed) {
  const startedAt = performance.now();
  const one = async (/** @type {number} */ n) => {
    await pause(n * INTERVAL_MS);
    const done = await acquireConnection();
    const mine = { sent: performance.now() - startedAt, at: Infinity, status: 0, instance: '' };
    answers.push(mine);
    const answer = await fetch(`${path}?who=${n + 1}`, { cache: 'no-store' }).catch(() => null);
    Object.assign(mine, { at: performance.now() - startedAt, status: answer?.status ?? 0, instance: answer?.headers.get('x-instance') ?? '' });
    await answer?.text().catch(() => '');
    done();
    changed();
  };
  await Promise.all(Array.from({ length: REQUESTS }, (_, n) => one(n)));
}

/** How full it is: a ring for each place, a disc for each that is taken. @param {Limiter} limiter @param {Answer[]} answers @param {number} now */
function levelsPicture({ id }, answers, now) {
  const all = levelsAt(id, answers, now);
  const columns = (/** @type {number} */ places) => (places > 50 ? 20 : 5);
  const width = Math.max(...all.map(({ places }) => columns(places))) * PLACE + PLACE;
  const high = Math.max(...all.map(({ places }) => Math.ceil(places / columns(places)))) * PLACE;
  const shapes = all.map(({ name, places, full }, i) => {
    const [x, wide] = [i * (width + PLACE), columns(places) * PLACE];
    const each = Array.from({ length: places }, (_, n) => svg('circle', {
      class: n < full ? 'place full' : 'place', cx: x + PLACE * (1 + (n % columns(places))), cy: high - PLACE * (Math.floor(n / columns(places)) + 0.5) + PLACE / 2, r: PLACE * 0.36,
    }));
    return svg('g', {}, svg('path', { class: 'vessel', d: `M${x + PLACE / 4} 0V${high + PLACE * 0.6}H${x + wide + PLACE * 0.75}V0` }), ...each,
      svg('text', { x: x + PLACE / 4, y: high + PLACE * 1.7 }, `${name ? `${name}: ` : ''}${full} / ${places}`));
  });
  const [w, h] = [all.length * (width + PLACE), high + PLACE * 2];
  return svg('svg', { class: 'vessels', viewBox: `0 -2 ${w} ${h}`, width: w, height: h, 'aria-hidden': 'true' }, ...shapes);
}

/**
 * Admitted requests above the axis, refused ones below it, in columns of time. A line shows how long one has waited; each second has its
 * count.
 * @param {Answer[]} answers @param {string} label
 */
function answersPicture(answers, label) {
  const piles = new Map();
  const placed = answers.map(({ sent, at, status }) => {
    const column = Math.min(Math.floor(at / COLUMN_MS), PICTURE_MS / COLUMN_MS - 1);
    const through = status === 200;
    const pile = `${column} ${through}`;
    const height = piles.get(pile) ?? 0;
    piles.set(pile, height + 1);
    return { sent, through, waited: through && at - sent > QUEUED_MS, x: (column + 0.5) * COLUMN, fromAxis: (height + 0.75) * 2 * (RADIUS + 0.25) };
  });
  const room = (/** @type {boolean} */ through, /** @type {number} */ least) => Math.max(least, ...placed.map((one) => (one.through === through ? one.fromAxis + 2 * RADIUS : 0)));
  const axis = room(true, ABOVE);
  const height = axis + room(false, BELOW) + LINE;
  const marks = placed.flatMap(({ sent, through, waited, x, fromAxis }) => {
    const y = axis + (through ? -fromAxis : fromAxis);
    if (!through) return [svg('path', { class: 'refused', d: `M${x - 2} ${y - 2}l4 4m0 -4l-4 4` })];
    return [...(waited ? [svg('path', { class: 'waited', d: `M${(sent / COLUMN_MS) * COLUMN} ${y}H${x - RADIUS}` })] : []), svg('circle', { class: 'through', cx: x, cy: y, r: RADIUS })];
  });
  const inSecond = (/** @type {number} */ s) => answers.filter(({ at, status }) => status === 200 && Math.floor(at / 1000) === s).length;
  const width = (PICTURE_MS / COLUMN_MS) * COLUMN;
  const seconds = Array.from({ length: PICTURE_MS / 1000 }, (_, s) => {
    const x = (s * 1000 / COLUMN_MS) * COLUMN;
    return svg('g', {}, svg('path', { class: 'axis', d: `M${x} ${axis - 4}v8` }),
      svg('text', { x: x + 3, y: height - 4 }, `${s} s${answers.length ? ` · ${inSecond(s)}` : ''}`));
  });
  return svg('svg', { class: 'strip', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label },
    svg('path', { class: 'axis', d: `M0 ${axis}H${width}` }), ...seconds, ...marks);
}

/** A limiter's row: name, button, summary, level, and picture. @param {Limiter} limiter */
function limiterRow(limiter) {
  const { id, path, at_once } = limiter;
  const send = el('button', { class: 'send' });
  const summaryOutput = el('output', {});
  const [name, note, rate] = [el('h2', {}), el('p', { class: 'dim' }), el('p', { class: 'rates' })];
  const [full, shown] = [el('div', {}), el('div', { class: 'scroller', tabindex: '0', role: 'group' })];
  /** @type {Answer[]} */
  let answers = [];
  let [busy, startedAt] = [false, 0];
  /** Nothing was answered: the limiter is elsewhere. */
  let missing = false;

  /** Infinity once nothing moves. */
  const now = () => (startedAt ? performance.now() - startedAt : Infinity);

  const draw = () => {
    const at = now();
    const received = answers.filter((answer) => answer.at <= at && answer.at < Infinity);
    const through = received.filter((answer) => answer.status === 200).length;
    const refused = received.filter((answer) => answer.status === 429).length;
    const summary = missing || received.some((answer) => answer.status === 404) ? t('limitsNginx') : t('limitsSaid', through, refused, received.length - through - refused);
    setText(name, t('limiter', id));
    shown.setAttribute('aria-label', t('limiter', id));
    shown.hidden = at_once != null;
    setText(note, t('limiterNote', id));
    setText(send, t('limitsSend', at_once ?? REQUESTS));
    send.setAttribute('aria-disabled', String(busy));
    setText(summaryOutput, received.length || missing ? summary : '');
    full.replaceChildren(levelsPicture(limiter, answers, startedAt ? at : Number.MAX_SAFE_INTEGER));
    setText(rate, startedAt ? t('limitsNow', { ...rateAt(answers, at), waiting: id === 'queued' ? levelsAt(id, answers, at)[0].full : null }) : '');
    // One moment is no picture over time.
    if (!at_once) shown.replaceChildren(answersPicture(received, `${t('limiter', id)}: ${summary}`));
  };

  /** Draws until all has been seen. */
  const move = () => {
    draw();
    const over = !busy && now() > Math.max(0, ...answers.map(({ at }) => at)) + TIME_AFTER_LAST_MS;
    if (over) startedAt = 0;
    if (over) draw();
    else if (reducedMotion.matches) setTimeout(move, REDUCED_MOTION_MS);
    else requestAnimationFrame(move);
  };

  send.addEventListener('click', async () => {
    if (busy) return;
    [answers, busy, missing] = [[], true, false];
    // These answers come all at once, and are then shown at their real pace.
    const sent = at_once ? await api.sendBurst(/** @type {'address' | 'server'} */ (id)).catch(() => null) : [];
    missing = sent == null;
    answers = (sent ?? []).map(({ at_ms, status }) => ({ sent: 0, at: at_ms, status, instance: '' }));
    const idle = !startedAt;
    startedAt = performance.now();
    if (idle) move();
    if (!at_once) await sendBurst(path, answers, () => {});
    busy = false;
  });
  const element = el('li', { id }, el('div', { class: 'heading' }, name, el('code', {}, `GET /${path}`), summaryOutput, send), note, el('div', { class: 'moving' }, full, rate), shown);
  return { element, draw };
}

const rows = LIMITERS.map(limiterRow);
$('limiters').append(...rows.map(({ element }) => element));

startPage(() => rows.forEach(({ draw }) => draw()));
