/** The lines of a lesson that matter (its functions, without what stands around them), and which of them an event is. Pure. */

/** Functions that only say a name. */
const TRIVIAL_FUNCTIONS = ['key', 'lease'];

/**
 * Where an event has no point of its own in the lesson's file, these say which line it comes from, the best first.
 * @type {Record<string, RegExp[]>}
 */
const HINTS = {
  taken: [/stage::lock\(|\.acquire\(|\.lock\(/],
  locked: [/FOR UPDATE|\.acquire\(|stage::lock\(|\.lock\(/, /read_then_write/],
  read: [/watched\(|mysql::read\(/, /read_then_write/],
  written: [/exec\(|mysql::execute/, /read_then_write/],
  deleted: [/release|under\(/],
  'refused-by-row': [/fenced::/],
  committed: [/commit/],
};
/** The command to Redis that an event is. @type {Record<string, RegExp>} */
const COMMANDS = { taken: /"SETNX"|"SET"/, checked: /"GET"/, deleted: /"DEL"/, lost: /Ok\(false\)/ };
/** The function that an event comes from, where no line of it says so. @type {Record<string, string>} */
const FUNCTION = { taken: 'try_lock', deleted: 'unlock' };
/** Events that are told at another's line. @type {Record<string, string>} */
const AS = { waits: 'taken', refused: 'taken', start: 'taken', released: 'deleted', lost: 'deleted', conflict: 'written' };

/** The functions of a file, one after the other, without their common margin. @param {string} text @returns {string[]} */
export function functionsOf(text) {
  const lines = text.split('\n');
  /** @type {string[]} */
  const shown = [];
  for (let i = 0; i < lines.length; i += 1) {
    const fn = /^(\s*)(?:pub(?:\([^)]*\))? )?(?:async )?fn (\w+)/.exec(lines[i]);
    if (!fn) continue;
    const end = lines.findIndex((line, n) => n >= i && line === `${fn[1]}}`);
    if (end < 0 || TRIVIAL_FUNCTIONS.includes(fn[2])) continue;
    if (shown.length) shown.push('');
    shown.push(...lines.slice(i, end + 1).map((line) => line.slice(fn[1].length)));
    i = end;
  }
  return shown;
}

/** The line that this event comes from; -1 where none is known. @param {string[]} lines @param {string} event */
export function lineOf(lines, event) {
  const point = (/** @type {string} */ name) => {
    const variant = name.replaceAll(/(?:^|-)(\w)/g, (_, letter) => letter.toUpperCase());
    return lines.findIndex((line) => new RegExp(`\\b(at|tell)\\(\\s*Point::${variant}\\b`).test(line));
  };
  const certain = (/** @type {string} */ name) => (COMMANDS[name] ? lines.findIndex((line) => COMMANDS[name].test(line)) : -1);
  const hinted = (/** @type {string} */ name) => (HINTS[name] ?? []).map((hint) => lines.findIndex((line) => hint.test(line))).find((n) => n >= 0) ?? -1;
  const inside = (/** @type {string} */ name) => {
    const fn = FUNCTION[name] ? lines.findIndex((line) => line.includes(`fn ${FUNCTION[name]}(`)) : -1;
    return fn < 0 ? -1 : fn + 1;
  };
  const as = AS[event] ?? event;
  return [event, as].flatMap((name) => [point(name), certain(name), inside(name), hinted(name)]).find((n) => n >= 0) ?? -1;
}
