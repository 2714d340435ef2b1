/** Light, dark, or the system's theme. The colours are in style.css, under `light-dark()`. */

import { localStore } from './storage.js';

// The first press changes what is seen.
const THEMES = matchMedia('(prefers-color-scheme: dark)').matches ? ['system', 'light', 'dark'] : ['system', 'dark', 'light'];
let theme = THEMES.includes(localStore.get('theme')) ? localStore.get('theme') : 'system';

function show() {
  document.documentElement.dataset.theme = theme;
}

/** @returns {string} the current theme */
export const current = () => theme;

export function next() {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  localStore.set('theme', theme);
  show();
}

show();
