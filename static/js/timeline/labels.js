/** Labels beside marks, placed so that no two overlap. Pure. */

/** @typedef {{at: number, text: string}} Part shown from its moment on */
/** `gap`: the distance from x. @typedef {{x: number, gap: number, parts: Part[], red: boolean, bold?: boolean}} Wanted */
/** @typedef {Wanted & {left: number, width: number, row: number}} Placed row 0 is next to the mark */

const GAP = 4;
/** More parts do not fit. */
const MAX_PARTS = 5;

/**
 *
 * @param {Wanted[]} wanted sorted by x
 * @param {object} room
 * @param {number} room.from the least x
 * @param {number} room.to
 * @param {number[]} room.lines lines that no label may cover
 * @param {(text: string, bold: boolean) => number} room.measure
 * @param {string} room.comma between the parts of a label
 * @returns {Placed[]}
 */
export function placeLabels(wanted, { from, to, lines, measure, comma }) {
  /** @type {Placed[]} */
  const placed = [];
  wanted.forEach((label, i) => {
    const width = measure(label.parts.map((part) => part.text).join(comma), label.bold || label.red);
    const next = wanted[i + 1]?.x ?? Infinity;
    const covers = (/** @type {number} */ x, /** @type {number} */ left, /** @type {number} */ wide) => x > left - 4 && x < left + wide + 4;
    // A thread from a higher label to its mark crosses no other label.
    const threads = (/** @type {number} */ left, /** @type {number} */ row) => placed.some((p) => (p.row < row && covers(label.x, p.left, p.width)) || (p.row > row && covers(p.x, left, width)));
    const free = (/** @type {number} */ left, /** @type {number} */ row, /** @type {number[]} */ crossing) => left >= from && left + width <= to
      && !crossing.some((x) => covers(x, left, width)) && !(crossing === lines && threads(left, row))
      && !placed.some((p) => p.row === row && left < p.left + p.width + GAP && p.left < left + width + GAP);
    const [start, end] = [label.x + label.gap, label.x - label.gap - width];
    const ways = start + width > next && free(end, 0, lines) ? [end, start] : [start, end];
    // Without room beside the mark, as near to it as the edges allow; in the end across lines.
    ways.push(Math.max(from, Math.min(to - width, label.x - width / 2)));
    const places = [lines, []].flatMap((crossing) => [0, 1, 2, 3].flatMap((row) => ways.map((left) => ({ left, row, crossing }))));
    const { left, row } = places.find((at) => free(at.left, at.row, at.crossing) && (at.row < 2 || !at.crossing.length)) ?? { left: ways[2], row: 0 };
    placed.push({ ...label, left, width, row });
  });
  return placed;
}

/**
 * Marks too close for a label each share one.
 * @param {Wanted[]} wanted sorted by x @param {number} near
 * @param {(texts: string[]) => boolean} fits whether a label of these texts is narrower than the picture
 */
export function joinClose(wanted, near, fits) {
  /** @type {Wanted[]} */
  const all = [];
  for (const label of wanted) {
    const last = all.at(-1);
    if (last && label.x - last.x < near) {
      last.parts = [...last.parts, ...label.parts];
      last.red ||= label.red;
    } else all.push({ ...label });
  }
  return all.map((label) => ({ ...label, parts: shortenParts(label.parts, fits) }));
}

/**
 * A repeated part is written once with its count; of parts that are too many or too wide the first and the last remain, or the last alone.
 * @param {Part[]} parts @param {Parameters<typeof joinClose>[2]} fits
 */
function shortenParts(parts, fits) {
  /** @type {(Part & {times: number})[]} */
  const merged = [];
  for (const part of parts) {
    const last = merged.at(-1);
    if (last?.text === part.text) last.times += 1;
    else merged.push({ ...part, times: 1 });
  }
  const all = merged.map(({ at, text, times }) => ({ at, text: times > 1 ? `${text} × ${times}` : text }));
  const texts = (/** @type {Part[]} */ of) => of.map(({ text }) => text);
  if (all.length < 2 || (all.length <= MAX_PARTS && fits(texts(all)))) return all;
  const last = all.slice(-1);
  const ends = [all[0], ...(all.length > 2 ? [{ at: all[1].at, text: '…' }] : []), ...last];
  return [ends, [{ at: all[0].at, text: '…' }, ...last]].find((some) => fits(texts(some))) ?? last;
}
