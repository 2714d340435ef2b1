/** What a lesson's Rust file says of itself: its statements, and how it polls. Pure. */

/** The statements of SQL that a file has of its own: what stands in its functions is their names. @param {string} source @returns {string[]} */
export const sqlStatements = (source) => [...source.matchAll(/^const \w+: &str =\s+"[A-Z]{2,}[^;]*;$/gm)].flatMap(([found]) => found.split('\n'));

/** How often waiters look again, in ms; null where they are told. @param {string[]} steps in English @param {string} source @returns {number | null} */
export function pollIntervalOf(steps, source) {
  const match = /again in (?:about )?(\d+) ms/.exec(steps.join(' '))?.[1];
  if (match) return Number(match);
  return source.includes('stage::lock(') ? 50 : null;
}
