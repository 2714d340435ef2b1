/**
 * The requests of a run as a model of the timeline, a lane for each, by entry. Pure.
 *
 * An answer says when its request began to wait, was inside and left; without a critical section, when each of its attempts ran. The lock
 * itself is not drawn.
 */

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./model.js').Span} Span */
/** @typedef {import('./model.js').Bar} Bar */
/** A request, in µs since the picture begins. `vain`: it had no critical section but attempts; these were beaten. @typedef {{thread: number, turn: number, instance: string, begun_us: number, entered_us: number, left_us: number, vain?: [number, number][]}} Stay */
/** `of`: how many there were; `drawn` may be a sample. @typedef {{of: number, drawn: Stay[]}} Stays */

/** @param {Stays} stays @param {boolean} isExclusive only one may be inside at once @returns {Model} */
export function modelOfStays({ drawn }, isExclusive) {
  const inside = drawn.map(({ entered_us, left_us }) => ({ from: entered_us, to: left_us }));
  const lanes = drawn.map((stay, i) => ({
    actor: `${stay.thread}·${stay.turn}`,
    instance: stay.instance,
    token: 0,
    runs: '',
    bars: barsOf(stay, isExclusive).filter((b) => b.to > b.from),
    overlaps: isExclusive ? overlapsOf(inside, i) : [],
    carries: [],
    ticks: [],
  }));
  return { begin: 0, end: Math.max(0, ...inside.map((s) => s.to)), lanes, locks: [], shelf: [], row: [], arrows: [], captions: [], moments: [], compact: true };
}

/** @param {Stay} stay @param {boolean} isExclusive @returns {Bar[]} */
function barsOf({ begun_us, entered_us, left_us, vain = [] }, isExclusive) {
  const begins = [...vain.map(([from]) => from), entered_us];
  const ends = [begun_us, ...vain.map(([, to]) => to)];
  return [
    ...begins.map((to, n) => bar('waits', ends[n], to)),
    ...vain.map(([from, to]) => bar('vain', from, to)),
    bar(isExclusive ? 'inside' : 'shared', entered_us, left_us),
  ];
}

/** @param {'waits' | 'vain' | 'inside' | 'shared'} kind @param {number} from @param {number} to @returns {Bar} */
const bar = (kind, from, to) => ({ kind, from, to, open: false });

/** The spans in which this one was inside with another. @param {Span[]} inside @param {number} i @returns {Span[]} */
function overlapsOf(inside, i) {
  const met = inside.flatMap((other, j) => (j === i ? [] : [{ from: Math.max(inside[i].from, other.from), to: Math.min(inside[i].to, other.to) }]));
  /** @type {Span[]} */
  const all = [];
  for (const span of met.filter((s) => s.to > s.from).sort((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (last && span.from <= last.to) last.to = Math.max(last.to, span.to);
    else all.push(span);
  }
  return all;
}
