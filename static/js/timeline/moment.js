/** What holds at one moment, in every lane: for the names at the left, and for who hears the picture. Pure. */

import { leftAt } from './wedges.js';

/** @typedef {import('./model.js').Model} Model */

/** Of two bars at once the stronger one says what holds. */
const STRONGEST = ['stopped', 'shut', 'inside', 'shared', 'vain', 'leaves', 'waits'];

/**
 * @param {Model} model @param {number} at
 * @returns {{lanes: string[], locks: ({owner: string, left: number, count: number} | null)[], shelf: string}}
 *   a lane's kind of bar, or an empty text; `left` in ms, -1 without a lease
 */
export function momentOf(model, at) {
  const covers = (/** @type {import('./model.js').Span} */ s, open = false) => s.from <= at && (at < s.to || (open && at >= s.to));
  return {
    lanes: model.lanes.map(({ bars }) => {
      const kinds = bars.filter((bar) => covers(bar, bar.open)).map((bar) => bar.kind);
      return STRONGEST.find((kind) => kinds.some((k) => k === kind)) ?? '';
    }),
    locks: model.locks.map(({ wedges }) => {
      const wedge = wedges.find((w) => covers(w, w.to === model.end && leftAt(w, w.to) !== 0));
      if (!wedge) return null;
      return { owner: wedge.owner, left: leftAt(wedge, at), count: wedge.counts.findLast((c) => c.at <= at)?.count ?? 1 };
    }),
    shelf: model.shelf.findLast((step) => step.at <= at)?.value ?? '',
  };
}
