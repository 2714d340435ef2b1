/**
 * The keyboard: ↑ ↓ lessons, Enter runs, Esc cancels, / searches, P projector, L language, ? help. In a race R plays it, Space plays it
 * again, ← → move by caption, with Shift by event.
 */

import { $ } from '../shared/dom.js';

/**
 *
 * @param {{step: (by: 1 | -1) => void, run: () => void, cancel: () => void, language: () => void, help: () => void, search: () => void, projector: () => void,
 *   other: (key: string, at: Element, fine: boolean) => (() => void) | null}} acts `other`: keys of the current view, which come first
 */
export function listen(acts) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || $('help').open) return;
    const at = /** @type {Element} */ (event.target);
    const act = acts.other(event.key, at, event.shiftKey) ?? defaultAction(event.key, at, acts);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

/** @param {string} key @param {Element} at @param {Parameters<typeof listen>[0]} acts @returns {(() => void) | null} */
function defaultAction(key, at, acts) {
  if (key === 'Escape') return acts.cancel;
  // A field keeps its own keys: arrows change its number.
  if (at.matches('pre, #token, #who, #series-name, #search, select, summary') || (at.matches('input') && key !== 'Enter')) return null;
  switch (key) {
    case 'ArrowUp': return () => acts.step(-1);
    case 'ArrowDown': return () => acts.step(1);
    // Enter presses a button. On the link of the current lesson it would do nothing, so it runs.
    case 'Enter': return at.matches('button, a:not([aria-current])') ? null : acts.run;
    case 'l': case 'L': return acts.language;
    case 'p': case 'P': return acts.projector;
    case '?': return acts.help;
    case '/': return acts.search;
    default: return null;
  }
}
