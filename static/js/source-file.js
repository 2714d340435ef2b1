/** What a lesson's Rust file says of itself: its steps, what it survives, what breaks it; and how it polls. Pure. */

/** @param {string} source @returns {{steps: string[], survives: string, breaks: string}} */
export function opening(source) {
  const lines = source.split('\n').filter((line) => line.startsWith('//!')).map((line) => line.slice(3).replace(/^ /, ''));
  /** @type {string[]} */
  const steps = [];
  let inside = false;
  for (const line of lines) {
    if (/^\d+\. /.test(line)) steps.push(line.replace(/^\d+\. /, ''));
    else if (inside && /^\s{2,}\S/.test(line)) steps.push(`${steps.pop()} ${line.trim()}`);
    inside = line !== '' && steps.length > 0;
  }
  const text = lines.map((line) => line || '\n').join(' ').replaceAll(/ ?\n ?/g, '\n');
  const survives = /What it survives: (.+?)(?= \*\*What breaks it|\n|$)/.exec(text)?.[1] ?? '';
  const breaks = /\*\*What breaks it\*\*: (.+?)(?=\n|$)/.exec(text)?.[1] ?? '';
  return { steps, survives, breaks };
}

/** The statements of SQL that a file has of its own: what stands in its functions is their names. @param {string} source @returns {string[]} */
export const statements = (source) => [...source.matchAll(/^const \w+: &str =\s+"[A-Z]{2,}[^;]*;$/gm)].flatMap(([found]) => found.split('\n'));

/** How often who waits looks again, in ms; null where it is told. @param {string} source @returns {number | null} */
export function polledEvery(source) {
  const said = /again in (?:about )?(\d+) ms/.exec(opening(source).steps.join(' '))?.[1];
  if (said) return Number(said);
  return source.includes('stage::lock(') ? 50 : null;
}
