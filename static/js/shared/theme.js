/** Light, dark, or as the system has it. The colours themselves are in style.css, under `light-dark()`. */

import { localStore } from './storage.js';

const THEMES = ['system', 'light', 'dark'];
let theme = THEMES.includes(localStore.get('theme')) ? localStore.get('theme') : 'system';

function show() {
  document.documentElement.dataset.theme = theme;
}

/** @returns {string} the theme in force */
export const current = () => theme;

/** Goes on to the next theme. */
export function next() {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  localStore.set('theme', theme);
  show();
}

show();
