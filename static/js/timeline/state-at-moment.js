/** The state of every lane at one moment, for the names at the left and for screen readers. Pure. */

import { leftAt } from './lock-lanes.js';

/** @typedef {import('./model.js').Model} Model */

/** A shorter rest of a lease counts as over: its server reports the end a little late. */
const LEASE_OVER_MS = 50;

/** Of several bars at once the first of these decides. */
const PRECEDENCE = ['stopped', 'shut', 'inside', 'shared', 'vain', 'leaves', 'waits'];

/**
 *
 * @param {Model} model @param {number} at
 * @returns {{lanes: string[], locks: ({owner: string, left: number, count: number} | null)[], shelf: string}}
 *   `lanes`: kinds of bars, or empty; `left`: in ms, -1 without a lease
 */
export function stateAt(model, at) {
  const covers = (/** @type {import('./model.js').Span} */ s, open = false) => s.from <= at && (at < s.to || (open && at >= s.to));
  return {
    lanes: model.lanes.map(({ bars }) => {
      const kinds = bars.filter((bar) => covers(bar, bar.open)).map((bar) => bar.kind);
      return PRECEDENCE.find((kind) => kinds.some((k) => k === kind)) ?? '';
    }),
    locks: model.locks.map(({ wedges }) => {
      const wedge = wedges.find((w) => covers(w, w.open));
      if (!wedge || isOver(wedge, at)) return null;
      return { owner: wedge.owner, left: leftAt(wedge, at), count: wedge.counts.findLast((c) => c.at <= at)?.count ?? 1 };
    }),
    shelf: model.shelf.findLast((step) => step.at <= at)?.value ?? '',
  };
}

/** @param {import('./model.js').Wedge} wedge @param {number} at */
function isOver(wedge, at) {
  const left = leftAt(wedge, at);
  return left >= 0 && left < LEASE_OVER_MS;
}
