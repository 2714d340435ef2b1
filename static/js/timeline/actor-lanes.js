/**
 * The bars of a lane from an actor's events, and where two are inside at once.
 *
 * 1. A critical section begins when the actor is inside (`locked`), or when it reads without a lock.
 * 2. It ends with its last write or commit; else when the lock is released or lost, or the actor gives up.
 * 3. One that ends in a conflict (EXEC nil, another version) is only an attempt.
 * 4. Two sections overlap if both entered by a lock, or both wrote the same number. Readers do not.
 *
 * A holder with an older fencing token is shut out once the row has seen a newer one.
 */

import { isActor, isForeignDelete, isInteger } from './events.js';

/** @typedef {import('./events.js').ReplayEvent} ReplayEvent */
/** @typedef {import('./model.js').Bar} Bar */
/** @typedef {import('./model.js').Span} Span */
/** @typedef {import('./model.js').Lane} Lane */
/** @typedef {import('./model.js').Step} Step */

/**
 * A critical section, built from its events.
 * @typedef {object} Section
 * @property {number} from
 * @property {number | null} wrote when it last wrote or committed
 * @property {number | null} left when it released or lost its lock, or gave up
 * @property {boolean} locked it entered by a lock
 * @property {boolean} shared it may be inside with others
 * @property {boolean} vain
 * @property {number} holds
 * @property {string} value what it wrote
 */

/** `entered`: inside by any way. */
const ENTER_EVENTS = ['locked', 'read', 'entered'];
const WRITE_EVENTS = ['written', 'committed'];
const LEAVE_EVENTS = ['released', 'lost', 'deleted', 'sold', 'done', 'failed', 'refused-by-row', 'conflict'];
/** The next entry may be reported this much before the exit: that is no overlap. */
const HANDOVER_US = 100_000;
/** Events without a label: bars and wedges show them. */
const UNLABELLED = ['start', 'refused', 'renew', 'taken', 'locked', 'entered', 'left', 'commit', 'unlock', 'renewed', 'stopped', 'continued', 'done'];

/** @param {ReplayEvent[]} all sorted by time @param {number} end @param {Step[]} shelf @param {number} room how many may be inside @param {string[]} endedAt actors that have a lane in any case @returns {Lane[]} */
export function lanesOf(all, end, shelf, room, endedAt) {
  const actors = [...new Set([...endedAt, ...all.filter(isActor).map((e) => e.actor)])].sort();
  const lanes = actors.map((actor) => {
    const events = all.filter((e) => e.actor === actor);
    return { actor, events, sections: sectionsOf(events) };
  });
  const shown = all.filter((e) => e.actor === 'row' && e.event === 'fence').map((e) => e.t_us);
  const shutAt = shutOutTimes(lanes.flatMap(({ sections }) => sections), shown);
  const insides = lanes.map(({ sections }) => sections.flatMap((s) => barsOf(s, end, shutAt(s))));
  return lanes.map(({ actor, events, sections }, i) => ({
    actor,
    instance: events.find((e) => e.instance)?.instance ?? '',
    token: events.findLast((e) => e.token != null)?.token ?? 0,
    runs: events.find((e) => e.event === 'start')?.value ?? '',
    bars: [...waitsOf(events, end), ...insides[i].map(({ bar }) => bar).filter((bar) => bar.to > bar.from), ...stopsOf(events, end)],
    overlaps: room > 1 ? crowdedSpans(insides[i], insides.flat(), room)
      : mergeSpans(insides.flatMap((theirs, j) => (j === i ? [] : insides[i].flatMap((a) => theirs.flatMap((b) => overlapOf(a, b)))))),
    carries: carriesOf(events, all),
    ticks: events.filter((e) => needsLabel(e, events, sections)).map((e) => ({ at: e.t_us, event: withContext(e, actors, events), red: isForeignDelete(e) || isLostUpdate(e, shelf) })),
  }));
}

/** The stale values: read, written by another, then written by this actor all the same. @param {ReplayEvent[]} events of one actor @param {ReplayEvent[]} all @returns {import('./model.js').Carry[]} */
function carriesOf(events, all) {
  return events.filter((e) => e.event === 'read' && isInteger(e.value)).flatMap((read) => {
    const then = events.find((e) => e.t_us > read.t_us && ['read', 'written', ...LEAVE_EVENTS].includes(e.event));
    if (then?.event !== 'written' || !isInteger(then.value)) return [];
    const other = all.filter((e) => e.actor !== read.actor && e.event === 'written' && isInteger(e.value) && e.t_us < then.t_us).map((e) => ({ value: e.value, t_us: visibleFrom(e, all, then) }))
      // Who has read what the other wrote knows it, in whatever order the two were reported.
      .find(({ value, t_us }) => read.t_us < t_us && value !== read.value);
    return other ? [{ from: other.t_us, to: then.t_us, value: read.value ?? '', read: read.t_us }] : [];
  });
}

/**
 * When others can read what was written: at once, or from its commit. A later write of the row waits for that commit, though it may be reported before it.
 * @param {ReplayEvent} write @param {ReplayEvent[]} all @param {ReplayEvent} later a later write of another actor
 */
function visibleFrom(write, all, later) {
  const next = all.find((e) => e.actor === write.actor && e.t_us > write.t_us && [...ENTER_EVENTS, ...WRITE_EVENTS].includes(e.event));
  return next?.event === 'committed' ? Math.min(next.t_us, later.t_us) : write.t_us;
}

/** @param {ReplayEvent[]} events of one actor @returns {Section[]} */
function sectionsOf(events) {
  /** @type {Section[]} */
  const sections = [];
  let taken = false;
  for (const e of events) {
    let now = sections.at(-1);
    if (e.event === 'taken') taken = true;
    if (ENTER_EVENTS.includes(e.event)) {
      const over = !now || now.wrote != null || now.left != null;
      if (over) {
        now = { from: e.t_us, wrote: null, left: null, locked: taken || e.event === 'locked', shared: false, vain: false, holds: 0, value: '' };
        sections.push(now);
      }
      if (e.event === 'locked' && now) {
        // The lock does not protect what was read before it.
        if (!now.locked && now.wrote == null) Object.assign(now, { from: e.t_us, locked: true });
        now.holds += 1;
        now.shared = e.value === 'read';
      }
    } else if (now && WRITE_EVENTS.includes(e.event)) {
      now.wrote = e.t_us;
      if (e.event === 'written') now.value = e.value ?? '';
    } else if (now && LEAVE_EVENTS.includes(e.event)) {
      if (e.event === 'released' && now.holds > 1) now.holds -= 1;
      else now.left ??= e.t_us;
      if (e.event === 'conflict' && now.wrote == null) now.vain = true;
      taken = false;
    }
  }
  return sections;
}

/**
 * A new token shuts out the sections that began before its own, which is the one that began nearest to that moment.
 * @param {Section[]} sections of all lanes @param {number[]} shown when the row saw a new token
 * @returns {(section: Section) => number} when it is shut out; Infinity: never
 */
function shutOutTimes(sections, shown) {
  const near = (/** @type {Section} */ s, /** @type {number} */ at) => Math.abs(s.from - at);
  const showed = shown.map((at) => [...sections].sort((a, b) => near(a, at) - near(b, at))[0]).filter(Boolean);
  return (section) => Math.min(Infinity, ...showed.filter((s) => s.from > section.from).map((s) => s.from));
}

/** @param {Section} s @param {number} end @param {number} shut @returns {{bar: Bar, section: Section}[]} */
function barsOf(s, end, shut) {
  const endedAt = s.wrote ?? s.left;
  const to = endedAt ?? end;
  const open = endedAt == null;
  const kind = s.vain ? 'vain' : s.shared ? 'shared' : 'inside';
  // Between the last write and the unlock it is outside and still busy.
  const out = s.wrote != null && !s.vain ? [{ bar: /** @type {Bar} */ ({ kind: 'leaves', from: s.wrote, to: s.left ?? end, open: s.left == null }), section: s }] : [];
  if (shut >= to) return [{ bar: { kind, from: s.from, to, open }, section: s }, ...out];
  return [
    { bar: { kind, from: s.from, to: Math.max(s.from, shut), open: false }, section: s },
    { bar: { kind: 'shut', from: Math.max(s.from, shut), to, open }, section: s },
    ...out,
  ];
}

/** @param {{bar: Bar, section: Section}} a @param {{bar: Bar, section: Section}} b @returns {Span[]} */
function overlapOf(a, b) {
  const both = a.section.locked && b.section.locked;
  const same = a.section.value !== '' && a.section.value === b.section.value;
  const inside = [a, b].every(({ bar }) => bar.kind === 'inside' || bar.kind === 'shared');
  const readers = a.section.shared && b.section.shared;
  if (!inside || readers || !(both || same)) return [];
  const [from, to] = [Math.max(a.bar.from, b.bar.from), Math.min(a.bar.to, b.bar.to)];
  return to - from > HANDOVER_US ? [{ from, to }] : [];
}

/** Where more are inside than may be. @param {{bar: Bar, section: Section}[]} mine @param {{bar: Bar, section: Section}[]} all @param {number} room @returns {Span[]} */
function crowdedSpans(mine, all, room) {
  const inside = all.filter(({ bar }) => bar.kind === 'inside').map(({ bar }) => bar);
  const edges = [...new Set(inside.flatMap(({ from, to }) => [from, to]))].sort((a, b) => a - b);
  const full = edges.slice(1).map((to, i) => ({ from: edges[i], to }))
    .filter((span) => span.to - span.from > HANDOVER_US && inside.filter((bar) => bar.from <= span.from && span.to <= bar.to).length > room);
  return mergeSpans(full.filter((span) => mine.some(({ bar }) => bar.kind === 'inside' && bar.from <= span.from && span.to <= bar.to)));
}

/** @param {Span[]} spans @returns {Span[]} with those that touch joined */
function mergeSpans(spans) {
  /** @type {Span[]} */
  const all = [];
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (last && span.from <= last.to) last.to = Math.max(last.to, span.to);
    else all.push({ ...span });
  }
  return all;
}

/** From the request until it is inside or gives up. @param {ReplayEvent[]} events @param {number} end @returns {Bar[]} */
function waitsOf(events, end) {
  /** @type {Bar[]} */
  const bars = [];
  for (const e of events) {
    const last = bars.at(-1);
    if (e.event === 'start' || e.event === 'waits') {
      if (!last || last.to <= e.t_us) bars.push({ kind: 'waits', from: e.t_us, to: end, open: true });
    } else if (last?.open && [...ENTER_EVENTS, 'failed', 'conflict', 'sold', 'done'].includes(e.event)) {
      Object.assign(last, { to: e.t_us, open: false });
    }
  }
  return bars.filter((bar) => bar.to > bar.from);
}

/** @param {ReplayEvent[]} events @param {number} end @returns {Bar[]} */
function stopsOf(events, end) {
  return events.filter((e) => e.event === 'stopped').map((e) => {
    const on = events.find((later) => later.event === 'continued' && later.t_us >= e.t_us);
    return { kind: 'stopped', from: e.t_us, to: on?.t_us ?? end, open: !on };
  });
}

/** Unlocks of the course that delete the key without a check: `lost` means that there was none. */
const UNLOCK_WITHOUT_CHECK = ['redis-setnx', 'redis-setnx-ttl'];

/** An event with what its label depends on. @param {ReplayEvent} e @param {string[]} actors @param {ReplayEvent[]} events of the same actor */
function withContext(e, actors, events) {
  if (e.event === 'waits' && actors.length === 1) return { ...e, value: 'self' };
  const runs = events.findLast((before) => before.event === 'start' && before.t_us <= e.t_us)?.value ?? '';
  return e.event === 'lost' && UNLOCK_WITHOUT_CHECK.includes(runs) ? { ...e, value: 'unseen' } : e;
}

/** Does the event have a label? @param {ReplayEvent} e @param {ReplayEvent[]} events @param {Section[]} sections */
function needsLabel(e, events, sections) {
  // Inside, a wait is for another lock, or for itself.
  if (e.event === 'waits') return sections.some((s) => s.from < e.t_us && e.t_us < (s.left ?? s.wrote ?? Infinity));
  // A sale is labelled only where one statement did everything.
  if (e.event === 'sold') return !events.some((before) => before.event === 'written');
  if (e.event === 'failed') return !events.some((before) => before.event === 'refused-by-row');
  return !UNLABELLED.includes(e.event);
}

/** @param {ReplayEvent} e @param {Step[]} shelf */
function isLostUpdate(e, shelf) {
  return e.event === 'written' && shelf.some((step) => step.red && step.by === e);
}
